"""Schedules whose steps begin together: all participants of a round, or the first of more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.schedules.base import (
    ClockOptions,
    Federated,
    Floats,
    Ints,
    ScheduleOptions,
    Step,
    count_of,
    finished,
    polynomial,
)


class SynchronousOptions(ClockOptions):
    """A step uses the updates of all participants of the round."""

    name: Literal["synchronous"] = "synchronous"

    clocked: ClassVar[bool] = False

    def steps(self, given: Federated, first: int) -> Iterator[Step]:
        """See `ScheduleOptions`."""
        clock = 0
        for number in count(0 if given.devices else first):  # without a clock no step depends on another
            participants = given.sample(number, given.clients, given.participation)
            ends = finished(given, participants, clock)
            busy, nobody = np.zeros((2, given.clients), np.int64)
            busy[participants], end = ends - clock, int(ends.max(initial=clock))
            if number >= first:
                yield Step(participants, nobody, nobody[:0], clock, end, busy, nobody.astype(float))
            clock = end


class DeadlineOptions(ScheduleOptions):
    """More clients begin than are needed, and those that are through first are used."""

    paper: ClassVar[str] = "Bonawitz et al. 2019"
    drops: ClassVar[bool] = True
    added: ClassVar[frozenset[str]] = frozenset({"late"})
    name: Literal["deadline"] = "deadline"
    over_selection: float = Field(1.3, ge=1, le=100)
    """How many clients begin for each that is used; `participation` is the share of those used."""
    late: Literal["dropped", "kept"] = "dropped"
    """What becomes of the others: "dropped" ends their work; with "kept" they work on, and the first step
    that ends after an update has arrived uses it, too; one that is tau steps old counts 1 / sqrt(1 + tau)."""

    @property
    def stale(self) -> bool:
        """See `ScheduleOptions`."""
        return self.late == "kept"

    def misfit(self, clients: int, participation: float) -> str:
        """See `ScheduleOptions`."""
        used = count_of(participation, clients)
        if self._begin(used) <= clients:
            return ""
        most, factor = int(clients / self.over_selection), math.floor(1e3 * clients / used) / 1e3
        fewer = f"participation = {math.floor(1e3 * most / clients) / 1e3:g}, or " if most else ""
        return (
            f"{used} of {clients} clients are used, and {self._begin(used)} would begin: "
            f"use {fewer}over_selection = {factor:g}, or less"
        )

    def _begin(self, used: int) -> int:
        return math.ceil(self.over_selection * used - 1e-9)

    def steps(self, given: Federated, first: int) -> Iterator[Step]:
        """See `ScheduleOptions`: whoever is at work does not begin; one client at least is not."""
        clock, most = 0, count_of(given.participation, given.clients)
        begins, ends, models = np.zeros((3, given.clients), np.int64)
        works = np.zeros(given.clients, bool)
        for number in count():
            idle = np.flatnonzero(~works)
            begun = idle[given.sample(number, len(idle), min(1.0, self._begin(most) / len(idle)))]
            begins[begun], ends[begun], models[begun] = clock, finished(given, begun, clock), number
            in_time = begun[np.lexsort((begun, ends[begun]))[:most]]
            end = int(ends[in_time[-1]])
            used = np.union1d(in_time, np.flatnonzero(works & (ends < end)))
            works[begun] = True
            works[used] = False
            dropped = np.flatnonzero(works & (not self.stale or number + 1 == given.rounds))
            works[dropped] = False
            staleness, busy = np.zeros((2, given.clients), np.int64)
            staleness[used], wasted = number - models[used], np.zeros(given.clients)
            over = np.union1d(used, dropped)
            busy[over] = np.minimum(ends[over], end) - begins[over]
            wasted[dropped] = _trained(given, dropped, busy[dropped])
            if number >= first:
                yield Step(used, staleness, begun[works[begun]], clock, end, busy, wasted)
            clock = end

    def weights(self, fresh: Floats, divisor: float, staleness: Ints) -> tuple[Floats, float]:
        """See `ScheduleOptions`: as FedBuff's, whose divisor is that of updates that are not stale."""
        return fresh * [polynomial(tau) for tau in staleness.tolist()], divisor


def _trained(given: Federated, clients: Ints, busy: Ints) -> Floats:
    """Return which share of its training each client has done after so many nanoseconds."""
    assert given.work is not None
    trains = np.maximum(given.work.trains[clients], 1)
    share: Floats = np.clip((busy - given.work.gets[clients]) / trains, 0.0, 1.0)
    return share
