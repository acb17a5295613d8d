"""Ctrl-C where there is no round to finish: the command ends in one line."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from fedmpi.comm import launch
from fedmpi.errors import Interrupted

LINE = "interrupted"
_end_process = os._exit
"""The original function: in a run ``os._exit`` raises (`fedmpi.exits`)."""

_COURTESY_S = 5.0
"""Seconds that other ranks wait for rank 0 to end the job."""
_FORWARD_S = 0.3
"""Seconds that the launcher has to forward rank 0's line before the job ends."""


class Stopped(BaseException):
    """Ctrl-C in a command that is no run.

    Not `KeyboardInterrupt`, which the parser of the command line turns into something else.
    """


def several_ranks() -> bool:
    """Return whether this process is one rank of several."""
    return (launch.expected_size() or 1) > 1


def release() -> None:
    """Let INT come, also one that is pending.

    `fedmpi.__main__` blocks it. In a job of several ranks it stays blocked until MPI has started on all of
    them: a rank that left before would leave the others waiting in `MPI_Init`, where no handler runs.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def leave(*_: object) -> NoReturn:
    """End this process and all ranks at once, in one line and with the exit code of an interrupted command.

    As a handler of INT while there is nothing yet to finish: an exception would come up in the midst of
    imports, some of which turn it into another one or lose it.
    """
    if launch.rank() == 0:
        os.write(2, f"fedmpi: {LINE}\n".encode())
    elif several_ranks():
        time.sleep(_COURTESY_S)
    if several_ranks() and launch.mpi_has_started():
        _abort()
    _end_process(Interrupted.exit_code)


def _abort() -> None:
    """End all ranks by MPI, which gives the launcher the exit code; what MPI says of it is dropped."""
    time.sleep(_FORWARD_S)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(Interrupted.exit_code)


@contextmanager
def raised(number: int = signal.SIGINT) -> Iterator[None]:
    """Within, a signal raises `Stopped`; where it is ignored, as INT in a background job, it stays so."""
    previous = signal.getsignal(number)
    if previous is not signal.SIG_IGN:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        signal.signal(number, previous)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped
