"""What MPI needs of a node is looked at before it starts."""

import mmap
import os
import resource
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest

from fedmpi.comm import resources
from fedmpi.errors import BadInput
from tests.mpi.launcher import find


@pytest.fixture(autouse=True)
def under_mpich(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("MPI_LOCALNRANKS", "2")


def test_a_node_with_room_is_not_refused(tmp_path):
    resources.check_resources(tmp_path)


def test_shared_memory_that_cannot_be_written_is_refused(tmp_path):
    needed = r"absent: No such file or directory, and MPI needs it for the ranks of a node: have it mounted"
    with pytest.raises(BadInput, match=needed):
        resources.check_resources(tmp_path / "absent")


def test_too_little_shared_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MPI_LOCALNRANKS", "1000000000")
    monkeypatch.setattr(resources, "check_descriptors", lambda used, ranks: None)
    needed = r"MB free, and MPI needs 1100000000\.0 MB for 1000000000 ranks: remove what nobody uses"
    with pytest.raises(BadInput, match=needed):
        resources.check_resources(tmp_path)


def test_open_mpi_does_without_shared_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    resources.check_resources(tmp_path / "absent")


def test_what_another_rank_of_this_launch_has_taken_counts_as_free(tmp_path, monkeypatch):
    full = SimpleNamespace(f_blocks=1, f_bavail=0, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda folder: full)
    segment = tmp_path / "mpich_shm_1_0"
    segment.write_bytes(bytes(1_100_000))
    with pytest.raises(BadInput, match=r"1\.1 MB free, and MPI needs 2\.2 MB for 2 ranks"):
        resources.check_resources(tmp_path)
    segment.write_bytes(bytes(2_200_000))
    resources.check_resources(tmp_path)
    segment.unlink()
    full.f_blocks = 0  # without a limit of its own
    resources.check_resources(tmp_path)


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs a script without what a launcher of the tests has set."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PMI_", "MPI_"))}

    def run(script):
        options = {"cwd": tmp_path, "env": clean, "capture_output": True, "text": True, "timeout": 100}
        return subprocess.run(["sh", "-c", script], **options)

    return run


@pytest.mark.parametrize("most", [20, 24])
def test_a_run_with_few_descriptors_ends_in_a_line(tiny_suite, shell, most):
    done = shell(f"ulimit -n {most}; exec {sys.executable} -m fedmpi run {tiny_suite} --out runs")
    assert done.returncode == 2
    said = f"fedmpi: a process may have {most} files open here, and 1 rank on a node need"
    assert done.stderr.startswith(said)
    assert done.stderr.endswith("raise the limit, such as ulimit -n 1024\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("most", range(34, 52, 4))
def test_all_ranks_of_a_launch_decide_alike(tiny_suite, shell, ranks, most):
    """A later rank inherits more open files. Either all run, or one line says what is wrong, at once."""
    run = ["run", tiny_suite, "--case", "0", "--set", "rounds=1", "--out", "runs"]
    command = shlex.join(find("mpich").command(ranks, "-m", "fedmpi", *run))
    done = shell(f"ulimit -n {most}; exec {command}")
    lines = [line for line in done.stderr.splitlines() if line.startswith("fedmpi: ")]
    assert (done.returncode, len(lines)) in ((0, 0), (2, 1)), done.stderr
    if lines:
        assert f"a process may have {most} files open here, and {ranks} ranks on a node need" in lines[0]


def test_a_rank_with_a_limit_of_its_own_ends_the_launch(tiny_suite, shell):
    first = find("mpich").command(1, "-m", "fedmpi", "run", tiny_suite, "--out", "runs")
    second = f"ulimit -n 20; exec {shlex.join(first[3:])}"
    done = shell(shlex.join([*first, ":", "-n", "1", "sh", "-c", second]))
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("fedmpi: ")]
    assert line.startswith("fedmpi: rank 1 on ") and "a process may have 20 files open here" in line


def test_a_soft_limit_is_raised_first(monkeypatch):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (20, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: asked.append(limits))
    resources.raise_limit()
    assert asked == [(4096, 4096)]


def test_memory_of_its_own_grows_by_what_is_written():
    before = resources.memory_in_use()
    with mmap.mmap(-1, 50_000_000) as written:  # an array may lie in memory that was freed before
        for _ in range(50):
            written.write(b"1" * 1_000_000)
        after = resources.memory_in_use()
    assert 45e6 < after["unique"] - before["unique"] < 60e6
    assert after["unique"] <= after["proportional"] <= after["resident"]
