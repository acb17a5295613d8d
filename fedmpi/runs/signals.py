"""Requests to stop: before a run has begun they end the command, later they wait for the round's end."""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any

from fedmpi.comm.interrupt import leave
from fedmpi.errors import Interrupted

_STOPPING = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Context in which USR1 and TERM set a flag instead of ending the process; from `begin` on INT, too.

    It is entered once per process, before MPI is loaded: a request that comes while
    data are prepared holds from the first round on, or from a phase before it that asks
    (`raise_if_requested`). An MPI library may install handlers of its own when it starts;
    `listen` takes the signals back.

    A second TERM, a second or more after the first, sets `insisted`: the run's watchdog then
    does not wait for the end of the round. Before `begin`, and the second time (at least a
    second after the first: a launcher may forward one INT twice), INT ends the process at
    once, as a person at the keyboard expects.
    """

    def __init__(self) -> None:
        self.requested = False
        self.insisted = False
        self._begun = False
        self._since = 0.0
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        self._previous = {number: signal.getsignal(number) for number in _STOPPING}
        self.listen()
        return self

    def listen(self) -> None:
        """Install the handlers, again where something else has taken their place."""
        for number in _STOPPING:
            signal.signal(number, self._note)

    def begin(self) -> None:
        """From now on there are rounds to keep: INT, too, waits for the end of the round."""
        self._begun = True

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        again = self.requested and now - self._since > 1.0
        if number == signal.SIGINT and (again or not self._begun):
            leave()
        if number == signal.SIGTERM and again:
            self.insisted = True
        if not self.requested:
            self.requested, self._since = True, now

    def raise_if_requested(self) -> None:
        """Raise Interrupted, on this rank alone: of a phase before the rounds nothing is kept."""
        if self.requested:
            raise stopped_alone("stopped by a signal before the rounds")


def stopped_alone(text: str) -> Interrupted:
    """Return the error of a rank that stops between checkpoints, by itself."""
    error = Interrupted(f"{text}; run the same command with --resume to continue")
    error.agreed = False
    return error
