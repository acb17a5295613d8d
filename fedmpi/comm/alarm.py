"""A rank that ends the job alone tells rank 0 why, which writes it into the record first."""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI

from fedmpi.errors import RankFailed

_TAG = 11
_LONGEST = 2000
"""Bytes of a reason that are sent."""

_GRACE_S = 2.0
"""How long rank 0 may take to end the job; it may be in a call that does not listen."""


def tell(comm: MPI.Intracomm, code: int, reason: str, *, said: bool = False) -> None:
    """Tell rank 0 why this rank ends the job, with the exit code; it then has a moment to do so itself.

    Rank 0 prints the reason unless this rank has ``said`` it. Where it does not hear in time, this returns.
    """
    if comm.rank == 0:
        return
    sys.stderr.flush()
    text = reason.encode()[:_LONGEST]
    message = np.concatenate([np.array([code, said], np.uint8), np.frombuffer(text, np.uint8)])
    request = comm.Isend(message, dest=0, tag=_TAG)
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until:
        request.Test()
        time.sleep(0.05)


def hear(comm: MPI.Intracomm) -> None:
    """Look, on rank 0, whether a rank has told why it ends the job.

    Raises
    ------
    RankFailed
        It has; text and exit code are its own.
    """
    status = MPI.Status()
    if not comm.Iprobe(source=MPI.ANY_SOURCE, tag=_TAG, status=status):
        return
    message = np.empty(status.Get_count(MPI.BYTE), np.uint8)
    comm.Recv([message, MPI.BYTE], source=status.Get_source(), tag=_TAG)
    error = RankFailed(message[2:].tobytes().decode(errors="replace"))
    error.exit_code, error.said = int(message[0]), bool(message[1])
    raise error
