"""Ends a rank that stands still: it names the rank and the hook or phase that it is in."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Self

from fedmpi.comm.world import World
from fedmpi.errors import FedmpiError, RankFailed
from fedmpi.programs.position import WAITING, Position
from fedmpi.runs.signals import StopRequest, stopped_alone
from fedmpi.visible import complain

GRACE_S = 30.0
"""Silence in a hook after which a rank that was asked to stop is ended."""

_LOOK_S = 1.0
"""Longest time between two looks."""

_LEAST_CPU = 0.005
"""Share of a core that a rank gets which computes, however crowded its machine is."""

_DEAF_S = 5.0
"""Seconds in which the raised error must end the rank; a hook may catch it."""

_TRIES = 10
"""Attempts to raise it in that time: while the rank writes into the run folder, none succeeds."""

_LAST_WORD = 2
"""Checks by which a waiting rank is later than the rank it waits for, so that the latter reports first."""


class Silence:
    """Seconds since a rank last made progress, from repeated checks of its position.

    In a hook a rank moves on when the hook returns. Elsewhere it does while it computes, or goes on to
    another client, or waits for others. Time is counted in looks, each as `_LOOK_S` at most twice, so that
    what passes while the machine sleeps, or while the process is stopped, is not counted.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._hook: tuple[str] | None = None
        self._place: tuple[str, int, int] | None = None
        self._cpu = 0.0

    def look(self, where: Position, passed: float, cpu: float) -> float:
        """Return the seconds of silence.

        Parameters
        ----------
        where : Position
        passed : float
            Seconds since the last look.
        cpu : float
            CPU seconds of the process so far.
        """
        hook, place, used = where.hook, (where.phase, where.round, where.client), cpu - self._cpu
        same = hook is self._hook and place == self._place
        idle = hook is None and where.phase not in WAITING and used < _LEAST_CPU * passed
        still = same and (hook is not None or idle)
        self._hook, self._place, self._cpu = hook, place, cpu
        self.seconds = self.seconds + min(passed, 2 * _LOOK_S) if still else 0.0
        return self.seconds


class Watchdog:
    """Context in which a thread watches where this rank is.

    It raises its error in the main thread, also inside a call that stands still, but never while the
    record is written. If that does not end the rank, the thread ends the job itself.

    Parameters
    ----------
    where : Position
    limit : float
        Seconds of silence; 0 for any number. In a hook a rank that was asked to stop has `GRACE_S`; one
        that was asked twice has nothing.
    stop : StopRequest
    world : World
    """

    def __init__(self, where: Position, limit: float, stop: StopRequest, world: World) -> None:
        self._where, self._limit, self._stop, self._world = where, limit, stop, world
        self._done = threading.Event()
        self._verdict: FedmpiError | None = None
        self._raised = False
        self._insisted = 0
        self._previous: Any = signal.SIG_DFL
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGALRM, self._raise)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        signal.signal(signal.SIGALRM, self._previous)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self._verdict is not None and not self._raised and not self._where.writing:
            self._raised = True
            raise self._verdict

    def _watch(self) -> None:
        silence, last = Silence(), time.monotonic()
        pause = min(_LOOK_S, self._limit / 4) if self._limit else _LOOK_S
        while not self._done.wait(pause):
            now = time.monotonic()
            still = silence.look(self._where, now - last, time.process_time())
            last = now
            self._verdict = self._judge(still)
            if self._verdict is not None:
                self._end(self._verdict)
                return

    def _judge(self, still: float) -> FedmpiError | None:
        place = f"rank {self._world.rank} has been in {self._where.describe(still)}"
        self._insisted += self._stop.insisted
        if self._insisted > (_LAST_WORD if self._where.phase in WAITING else 0):
            return stopped_alone(f"stopped by a second signal: {place}")
        if self._stop.requested and still >= GRACE_S and self._where.hook is not None:
            return stopped_alone(f"stopped by a signal: {place}")
        if self._limit and still >= self._limit:
            return RankFailed(f"{place}; watchdog_seconds = {self._limit:g} allows no more")
        return None

    def _end(self, verdict: FedmpiError) -> None:
        """Raise the verdict in the main thread; if that does not end the rank, end the job from here."""
        for _ in range(_TRIES):
            if not self._raised:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            if self._done.wait(_DEAF_S / _TRIES):
                return
        if self._raised and self._done.wait(GRACE_S):
            return
        if self._world.size > 1:
            self._world.fail(verdict)
        complain(verdict)
        os._exit(verdict.exit_code)
