"""The undisturbed run that sessions are compared with."""

import fcntl

import pytest

from tests.plugins import forget


@pytest.fixture
def forgetting():
    """Forget what plug-ins define."""
    yield
    forget("")


@pytest.fixture(scope="session")
def alone(tmp_path_factory, worker_id):
    """A session in this process: one rank, no launcher; once for all workers."""
    if worker_id == "master":
        return run_alone(tmp_path_factory.mktemp("alone"))
    root = tmp_path_factory.getbasetemp().parent / "alone"
    root.mkdir(exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "done").exists():
            run_alone(root)
            (root / "done").touch()
    return root


def run_alone(root):
    from fedmpi.comm.world import World
    from tests.mpi.session import check_all

    check_all(World(), root, "mpich")
    forget("")  # classes that the checks define
    return root
