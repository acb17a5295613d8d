"""The sessions' suite in one process. It comes first, so that sessions of other workers need not wait for it."""

from fedmpi.store.reader import load_run
from tests.mpi.session import covered


def test_every_case_of_the_suite_ends(alone):
    assert {load_run(alone / case).status for case in covered("mpich", 3)} == {"complete"}
