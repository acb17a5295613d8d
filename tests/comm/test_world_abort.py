"""How a job ends that nobody foresaw."""

import pytest
from mpi4py import MPI

from fedmpi.comm.world import abort


def test_too_little_memory_is_one_line(capsys):
    error = RuntimeError(
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 B"
    )
    for each in (error, MemoryError()):
        with pytest.raises(SystemExit) as ended:
            abort(each)
        said = capsys.readouterr().err
        assert ended.value.code == 1 and said.count("\n") == 1
        assert said.startswith("fedmpi: rank 0 on ") and "has not enough memory" in said


def test_anything_else_is_a_traceback(capsys):
    with pytest.raises(SystemExit):
        abort(ValueError("what is this"))
    said = capsys.readouterr().err
    assert said.startswith("rank 0 failed:\n") and said.endswith("ValueError: what is this\n")


def test_a_failed_call_of_mpi_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        abort(MPI.Exception(MPI.ERR_OTHER))
    said = capsys.readouterr().err
    assert ended.value.code == 1 and said.count("\n") == 1
    assert said.startswith("fedmpi: rank 0: a call of MPI failed: another rank has died")
