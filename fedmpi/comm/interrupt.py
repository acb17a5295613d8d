"""Ctrl-C where there is no round to finish: the command ends in one line."""

from __future__ import annotations

import os
import signal
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
"""Seconds that other ranks wait for rank 0's message; the launcher ends the job when any rank exits."""


class Stopped(BaseException):
    """Ctrl-C in a command that is no run.

    Not `KeyboardInterrupt`, which the parser of the command line turns into something else.
    """


def leave(*_: object) -> NoReturn:
    """End this process at once, in one line of rank 0 and with the exit code of an interrupted command.

    As a handler of INT while there is nothing yet to finish: an exception would come up in the midst of
    imports, some of which turn it into another one or lose it.
    """
    if launch.rank() == 0:
        os.write(2, f"fedmpi: {LINE}\n".encode())
    elif launch.expected_size() is not None:
        time.sleep(_COURTESY_S)
    _end_process(Interrupted.exit_code)


@contextmanager
def raised() -> Iterator[None]:
    """Within, INT raises `Stopped`; where it is ignored, as in a background job, it stays so."""
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped
