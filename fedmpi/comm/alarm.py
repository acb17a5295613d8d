"""A rank that ends the job alone sends rank 0 the reason, which rank 0 writes into the record."""

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
"""Seconds that rank 0 has to end the job; it may be in a call that does not test for such a message."""


def tell(comm: MPI.Intracomm, code: int, reason: str, *, printed: bool = False) -> None:
    """Send rank 0 the reason why this rank ends the job, and wait a moment for rank 0 to end it.

    Parameters
    ----------
    comm : communicator
    code : int
        Exit code of the job.
    reason : str
        One line for the user; cut after 2000 bytes.
    printed : bool, optional
        Whether this rank has printed the reason; otherwise rank 0 prints it.
    """
    if comm.rank == 0:
        return
    sys.stderr.flush()
    text = reason.encode()[:_LONGEST]
    message = np.concatenate([np.array([code, printed], np.uint8), np.frombuffer(text, np.uint8)])
    request = comm.Isend(message, dest=0, tag=_TAG)
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until:
        request.Test()
        time.sleep(0.05)


def check(comm: MPI.Intracomm) -> None:
    """Test, on rank 0, whether a rank has sent a reason to end the job.

    Raises
    ------
    RankFailed
        A rank has; text and exit code are that rank's.
    """
    status = MPI.Status()
    if not comm.Iprobe(source=MPI.ANY_SOURCE, tag=_TAG, status=status):
        return
    message = np.empty(status.Get_count(MPI.BYTE), np.uint8)
    comm.Recv([message, MPI.BYTE], source=status.Get_source(), tag=_TAG)
    error = RankFailed(message[2:].tobytes().decode(errors="replace"))
    error.exit_code, error.printed = int(message[0]), bool(message[1])
    raise error
