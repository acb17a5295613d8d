"""A rank that leaves without a word, or stands still, ends the job with a line, a code and a status."""

import re
import shlex
import subprocess

import pytest

from fedmpi.store.reader import load_run
from tests.mpi.launcher import find

PLUGIN = """
import os, time
from mpi4py import MPI
from fedmpi.algorithms.base import Algorithm
class Odd(Algorithm):
    name = "odd"
    calls = 0
    def change(self, gradient, model, received, memory):
        Odd.calls += 1
        if MPI.COMM_WORLD.rank == 1 and Odd.calls == 5:  # two are before the rounds
            {act}
"""


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (
            "os._exit(0)",
            r"rank 1: algorithm odd: hook change in \S+odd.py ended the process with exit code 0",
        ),
        ("time.sleep(600)", r"rank 1 has been in odd.change for 1 s \(round 1, client synthetic-2\); .*"),
    ],
)
def test_the_job_ends_and_says_why(act, line, tiny_suite, tmp_path):
    (tmp_path / "odd.py").write_text(PLUGIN.format(act=act))
    settings = ["--set", "algorithm=odd", "--set", "kernels=csr", "--set", "watchdog_seconds=1.0"]
    arguments = ["-m", "fedmpi", "run", tiny_suite, "--plugin", "odd.py", *settings, "--out", "runs"]
    code, output = find("mpich").run(2, *arguments, cwd=tmp_path, timeout=120)
    said = [text.removeprefix("fedmpi: ") for text in output.splitlines() if text.startswith("fedmpi: ")]
    assert code == 1, output
    assert len(said) == 1 and re.fullmatch(line, said[0])
    (folder,) = (tmp_path / "runs").iterdir()
    run = load_run(folder)
    assert (run.status, run.reason) == ("failed", said[0])
    assert run.rounds_completed < 4


INTERRUPTED = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and int(os.environ["PMI_RANK"]) in {ranks}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["fedmpi", "run", {suite!r}, "--out", "runs"]
from fedmpi.__main__ import main
main()
"""


@pytest.mark.parametrize("ranks", [(0, 1, 2), (0,)])
@pytest.mark.parametrize("module", ["fedmpi.cli.main", "fedmpi.comm.world", "fedmpi.runs.run"])
def test_ctrl_c_before_the_first_round_is_one_line_of_the_job(module, ranks, tiny_suite, tmp_path):
    """Before MPI starts, as it starts, and after; the other ranks may be elsewhere."""
    code = INTERRUPTED.format(module=module, ranks=ranks, suite=str(tiny_suite))
    assert find("mpich").run(3, "-c", code, cwd=tmp_path, timeout=120) == (75, "fedmpi: interrupted\n")
    assert not (tmp_path / "runs").exists()


EARLY = """
import os
from fedmpi.algorithms.base import Algorithm
class Early(Algorithm):
    name = "early"
if (os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"]) == "1":
    {act}
"""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("act", "code", "line"),
    [
        ("raise KeyError(3)", 2, "rank 1: --plugin early.py: KeyError: 3"),
        (
            "from fedmpi.cli import plan; plan.plan_suite = None",
            1,
            "rank 1: this is a defect of fedmpi; please report it with `fedmpi info`",
        ),
    ],
)
def test_a_rank_that_fails_before_mpi_starts_ends_all(mpi, act, code, line, tiny_suite, tmp_path):
    (tmp_path / "early.py").write_text(EARLY.format(act=act))
    arguments = ["-m", "fedmpi", "run", tiny_suite, "--plugin", "early.py", "--out", "runs"]
    ended, output = find(mpi).run(2, *arguments, cwd=tmp_path, timeout=60)
    assert ended == code, output
    assert [text for text in output.splitlines() if text.startswith("fedmpi: ")] == [f"fedmpi: {line}"]
    assert ("TypeError" in output) == (code == 1)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("options", "line"), [("ro", "Read-only file system"), ("size=1m", "1.0 MB free")])
def test_shared_memory_that_mpich_cannot_use_ends_in_a_line(options, line, tiny_suite, tmp_path):
    mpi = find("mpich")
    mounted = f"mount -t tmpfs -o size=8m,{options} tmpfs /dev/shm && exec "
    command = shlex.join(mpi.command(2, "-m", "fedmpi", "run", tiny_suite, "--out", "runs"))
    if subprocess.run(["unshare", "-m", "sh", "-c", mounted + "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted + command],
        cwd=tmp_path,
        env=mpi.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("fedmpi: /dev/shm: ") and line in done.stderr
