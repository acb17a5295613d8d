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
)


class SynchronousOptions(ClockOptions):
    """A step uses the updates of all participants of the round."""

    name: Literal["synchronous"] = "synchronous"

    clocked: ClassVar[bool] = False

    def steps(self, given: Federated, first: int) -> Iterator[Step]:
        """See `ScheduleOptions`."""
        clock = 0
        for number in count(0 if given.devices else first):  # without a clock no step depends on another
            participants = given.sample(number, given.participation)
            ends = finished(given, participants, clock)
            step = _step(given, participants, ends, clock, int(ends.max(initial=clock)))
            if number >= first:
                yield step
            clock = step.clock


class DeadlineOptions(ScheduleOptions):
    """More clients begin than are needed, and those that are through first are used."""

    paper: ClassVar[str] = "Bonawitz et al. 2019"
    drops: ClassVar[bool] = True
    name: Literal["deadline"] = "deadline"
    over_selection: float = Field(1.3, ge=1, le=100)
    """How many clients begin for each that is used; `participation` is the share of those used."""

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
        """See `ScheduleOptions`."""
        clock, used = 0, count_of(given.participation, given.clients)
        for number in count():
            begun = given.sample(number, self._begin(used) / given.clients)
            ends = finished(given, begun, clock)
            best = np.lexsort((begun, ends))[:used]
            step = _step(given, begun, ends, clock, int(ends[best[-1]]), np.sort(begun[best]))
            if number >= first:
                yield step
            clock = step.clock


def _step(given: Federated, begun: Ints, ends: Ints, begin: int, end: int, used: Ints | None = None) -> Step:
    """Return a step in which clients began together; the work of those that are not used is given up."""
    nobody = np.zeros(given.clients, np.int64)
    busy, wasted = nobody.copy(), np.zeros(given.clients)
    busy[begun] = np.minimum(ends, end) - begin
    if used is not None:
        dropped = np.setdiff1d(begun, used)
        wasted[dropped] = _trained(given, dropped, busy[dropped])
    return Step(begun if used is None else used, nobody, nobody[:0], begin, end, busy, wasted)


def _trained(given: Federated, clients: Ints, busy: Ints) -> Floats:
    """Return which share of its training each client has done after so many nanoseconds."""
    assert given.work is not None
    trains = np.maximum(given.work.trains[clients], 1)
    share: Floats = np.clip((busy - given.work.gets[clients]) / trains, 0.0, 1.0)
    return share
