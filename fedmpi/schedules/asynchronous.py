"""Schedules without rounds: the server takes updates as they arrive, of models that may be old."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.schedules.base import ClockOptions, Federated, Floats, Ints, Step, count_of, polynomial
from fedmpi.seeds import Purpose, key, words


class _Stale(ClockOptions):
    """Settings of both."""

    staleness: Literal["constant", "polynomial", "hinge"] = "polynomial"
    """What an update that is tau steps old counts: 1; (1 + tau)^-exponent; or 1 up to tau = `start`, and then
    1 / (slope (tau - start) + 1)."""
    exponent: float = Field(0.5, ge=0, le=10)
    """Of "polynomial"."""
    start: int = Field(4, ge=0, le=1_000_000)
    """Of "hinge"."""
    slope: float = Field(10.0, ge=0, le=1e6)
    """Of "hinge"."""

    @property
    def stale(self) -> bool:
        """See `ScheduleOptions`."""
        return True

    def _decayed(self, staleness: Ints) -> Floats:
        """Return what is left of updates' weights, float64 [k]."""
        return np.array([self._left(tau) for tau in staleness.tolist()])

    def _left(self, staleness: int) -> float:
        """Return s of one update (Xie, Koyejo and Gupta 2019, section 5.2)."""
        if self.staleness == "polynomial":
            return polynomial(staleness, self.exponent)
        if self.staleness == "hinge" and staleness > self.start:
            return 1.0 / (self.slope * (staleness - self.start) + 1.0)
        return 1.0

    def _arrivals(self, given: Federated, first: int) -> Iterator[Step]:
        """Yield steps from the first on that use `updates` each; a share of clients is always at work.

        A client that is through makes place for one that idles, drawn at random, which begins with the newest
        model; no client has two updates in one step.
        """
        under_way: list[tuple[int, int, int, int]] = []  # end, client, begin, model
        idle, clock, model, drawn = list(range(given.clients)), 0, 0, 0
        places = count_of(given.participation, given.clients)

        def fill(now: int) -> None:
            nonlocal drawn
            while idle and len(under_way) < places:
                word = int(words(key(given.seed, Purpose.SCHEDULE, drawn), 1)[0])
                client, drawn = idle.pop(word * len(idle) >> 64), drawn + 1
                heapq.heappush(under_way, (given.end(client, now), client, now, model))

        while True:
            started = clock
            fill(clock)
            staleness, busy = np.zeros((2, given.clients), np.int64)
            used: list[int] = []
            while True:
                clock, client, begin, version = heapq.heappop(under_way)
                used.append(client)
                staleness[client], busy[client] = model - version, clock - begin
                if len(used) == self.updates:
                    break
                fill(clock)
            used.sort()
            held = sorted(client for _, client, _, version in under_way if version == model)
            nothing = np.zeros(given.clients)
            if model >= first:
                yield Step(np.array(used), staleness, np.array(held, np.int64), started, clock, busy, nothing)
            idle, model = sorted([*idle, *used]), model + 1


class BufferedOptions(_Stale):
    """A step uses the next updates to arrive, as many as the buffer holds (FedBuff)."""

    paper: ClassVar[str] = "Nguyen et al. 2022"
    name: Literal["buffered"] = "buffered"
    size: int = Field(10, ge=1, le=1_000_000)
    """Updates of a step; `participation` is the share of the clients that are at work at any time."""
    rate: float = Field(1.0, gt=0, le=1000)
    """By which a step is longer than the mean of its updates: the server's learning rate."""

    @property
    def updates(self) -> int:
        """See `ScheduleOptions`."""
        return self.size

    def misfit(self, clients: int, participation: float) -> str:
        """See `ScheduleOptions`."""
        if self.size <= clients:
            return ""
        return f"a step uses at most one update of each of {clients} clients: use size = {clients} or less"

    def steps(self, given: Federated, first: int) -> Iterator[Step]:
        """See `ScheduleOptions`."""
        return self._arrivals(given, first)

    def weights(self, fresh: Floats, divisor: float, staleness: Ints) -> tuple[Floats, float]:
        """See `ScheduleOptions`: the divisor is that of updates that are not stale (Algorithm 1)."""
        return fresh * self._decayed(staleness), divisor / self.rate


class AsynchronousOptions(_Stale):
    """Each update is used as it arrives: the model moves a part of the way to the client's (FedAsync)."""

    paper: ClassVar[str] = "Xie et al. 2019"
    mixes: ClassVar[bool] = True
    name: Literal["asynchronous"] = "asynchronous"
    rate: float = Field(0.6, gt=0, le=1)
    """The part, for an update that is not stale; `participation` is the share of the clients at work."""

    @property
    def updates(self) -> int:
        """See `ScheduleOptions`."""
        return 1

    def steps(self, given: Federated, first: int) -> Iterator[Step]:
        """See `ScheduleOptions`."""
        return self._arrivals(given, first)

    def weights(self, fresh: Floats, divisor: float, staleness: Ints) -> tuple[Floats, float]:
        """See `ScheduleOptions`; an update that is a mean of its own counts 1 where it is not stale."""
        return fresh / divisor * (self.rate * self._decayed(staleness)), 1.0
