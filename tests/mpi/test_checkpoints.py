"""Checkpoints whose files come from several ranks: file systems that fail one of them (kills: test_kill.py)."""

import os
import subprocess

import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find

FULL = """
import resource
from mpi4py import MPI
from fedmpi.algorithms.base import Algorithm
class Full(Algorithm):
    "FedAvg on a disk that fills up."
    name = "full"
    calls = 0
    def change(self, gradient, model, received, memory):
        Full.calls += 1
        if MPI.COMM_WORLD.size > 1 and MPI.COMM_WORLD.rank == 1 and Full.calls > 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
"""


@pytest.mark.long
def test_one_ranks_full_disk_ends_the_job_with_one_line_and_the_run_goes_on_later(
    tiny_suite, fedmpi, tmp_path
):
    (tmp_path / "full.py").write_text(FULL)
    settings = ["algorithm=full", "kernels=csr", "checkpoint_seconds=0.0", "batch_size=16", "rounds=5"]
    words = [word for setting in settings for word in ("--set", setting)]
    arguments = ["run", tiny_suite, "--plugin", "full.py", *words, "--out"]
    code, output = find("mpich").run(3, "-m", "fedmpi", *arguments, "torn", cwd=tmp_path, timeout=240)
    said = [line for line in output.splitlines() if line.startswith("fedmpi: ")]
    assert code == 1, output
    assert len(said) == 1
    assert said[0].startswith("fedmpi: rank 1: no space left on device for ")
    assert said[0].endswith(".rank-1; free some and continue with --resume")
    (folder,) = (tmp_path / "torn").iterdir()
    run = load_run(folder)
    assert (run.status, run.reason) == ("failed", said[0].removeprefix("fedmpi: "))
    assert 1 <= run.rounds_completed < 5
    assert list((folder / "checkpoints").iterdir())
    assert fedmpi(*arguments, "torn", "--resume", "--set", "checkpoints=removed").returncode == 0
    assert not (folder / "checkpoints").exists()
    assert fedmpi(*arguments, "whole").returncode == 0
    assert differences(tmp_path / "whole" / folder.name, folder) == []


def launched_apart(mount, path, out):
    """Run on two ranks of which the second sees, in place of `out`, what `mount` makes of it."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("a file system of one rank's own needs root")
    mpi = find("mpich")
    program = f"{mpi.python} -m fedmpi run {path} --out {out}"
    apart = ["unshare", "-m", "sh", "-c", f"{mount} && exec {program}"]
    command = [str(mpi.mpiexec), "-n", "1", *program.split(), ":", "-n", "1", *apart]
    return subprocess.run(
        command, env=mpi.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("mount", "line"),
    [
        ("mount -t tmpfs none {out}", "is not on a file system that all ranks share (rank 0 on "),
        (
            "mount --bind {out} {out} && mount -o remount,ro,bind {out}",
            ": Read-only file system); choose another",
        ),
    ],
)
def test_a_folder_that_one_rank_does_not_share_or_cannot_write_is_refused_with_one_line(
    tiny_suite, mount, line, tmp_path
):
    out = tmp_path / "runs"
    out.mkdir()
    done = launched_apart(mount.format(out=out), tiny_suite, out)
    assert done.returncode == 2, done.stdout + done.stderr
    said = [text for text in done.stderr.splitlines() if text.startswith("fedmpi: ")]
    assert len(said) == 1
    assert line in said[0] and "rank 1" in said[0]
    assert not [path for path in out.rglob("*") if path.is_file()]
