"""What MPI needs of a node is looked at before it starts."""

import os
import resource
import subprocess
import sys
from functools import partial

import pytest

from fedmpi.comm import resources
from fedmpi.errors import BadInput


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


def test_what_another_rank_of_this_launch_has_taken_counts_as_free(tmp_path):
    (tmp_path / "mpich_shm_1_0").write_bytes(bytes(8192))
    assert resources._of_this_launch(tmp_path) == 8192


@pytest.mark.parametrize("most", [20, 24])
def test_a_run_with_few_descriptors_ends_in_a_line(tiny_suite, tmp_path, most):
    limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI_", "MPI_"))}
    done = subprocess.run(
        [sys.executable, "-m", "fedmpi", "run", tiny_suite, "--out", "runs"],
        cwd=tmp_path, env=environment, preexec_fn=limited, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"fedmpi: a process may have {most} files open here, and 1 rank on a node need"
    )
    assert done.stderr.endswith("raise the limit, such as ulimit -n 1024\n")
    assert done.stderr.count("\n") == 1
