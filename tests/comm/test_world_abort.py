"""How a job ends that nobody foresaw."""

import pytest
from mpi4py import MPI

from fedmpi.comm.world import abort


@pytest.mark.parametrize(
    ("error", "begin", "words"),
    [
        (RuntimeError("[enforce fail] can't allocate memory: you tried"), "rank 0 on ", "not enough memory"),
        (MemoryError(), "rank 0 on ", "has not enough memory"),
        (MPI.Exception(MPI.ERR_OTHER), "rank 0: a call of MPI failed: another rank has died", ""),
    ],
)
def test_what_may_happen_is_one_line(capsys, error, begin, words):
    with pytest.raises(SystemExit) as ended:
        abort(error)
    said = capsys.readouterr().err
    assert ended.value.code == 1 and said.count("\n") == 1
    assert said.startswith(f"fedmpi: {begin}") and words in said


def test_anything_else_is_a_traceback(capsys):
    with pytest.raises(SystemExit):
        abort(ValueError("what is this"))
    said = capsys.readouterr().err
    assert said.startswith("rank 0 failed:\n") and said.endswith("ValueError: what is this\n")
