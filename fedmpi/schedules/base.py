"""What a schedule answers for each server step, and from what (imports without torch)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fedmpi.config.options import Options
from fedmpi.devices.base import Devices

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One step of the server; it makes model t + 1 from model t.

    Attributes
    ----------
    participants : int64 [k]
        Clients whose updates it uses, ascending.
    staleness : int64 [clients]
        Steps between the model that a participant's update starts from and t.
    held : int64 [*]
        Clients that start from model t and whose updates a later step uses.
    begin, clock : int
        Nanoseconds of virtual time at its begin and at its end.
    busy : int64 [clients]
        Nanoseconds for which clients were at work on what ended in this step.
    wasted : float64 [clients]
        Share of a round's training that was done for nothing.
    streams : int64 [clients] or None
        Rounds (0-based) whose random numbers the participants use; None: the step's own.
    """

    participants: Ints
    staleness: Ints
    held: Ints
    begin: int
    clock: int
    busy: Ints
    wasted: Floats
    streams: Ints | None = None


@dataclass(frozen=True)
class Work:
    """Nanoseconds in which each client gets a model, trains, and sends, int64 [clients] each."""

    gets: Ints
    trains: Ints
    sends: Ints

    @property
    def total(self) -> Ints:
        """All of it."""
        return self.gets + self.trains + self.sends


@dataclass(frozen=True)
class Federated:
    """The clients as schedules know them.

    Attributes
    ----------
    clients : int
    seed : int
        Of the run.
    participation : float
        Share of the clients that are at work.
    sample : callable
        Returns the sample of a round (0-based) that has such a share of so many clients.
    devices, work : Devices, Work
        Without devices there is no clock.
    among : callable or None
        Returns the work in a round in which only these clients take part; None: it is the same in all.
    rounds : int
        After which the run ends; 0: never.
    """

    clients: int
    seed: int
    participation: float
    sample: Callable[[int, int, float], Ints]
    devices: Devices | None = None
    work: Work | None = None
    among: Callable[[Ints], Work] | None = None
    rounds: int = 0

    def end(self, client: int, begin: int) -> int:
        """Return when a client that begins a round then is through with it."""
        if self.devices is None or self.work is None:
            return begin
        return self.devices.end(client, begin, int(self.work.total[client]))


class ScheduleOptions(Options):
    """Base of the options of all schedules.

    Attributes
    ----------
    clocked : bool
        Whether the order of things depends on devices.
    drops : bool
        Whether work of clients may be for nothing.
    mixes : bool
        Whether the server's model moves towards a client's model, in place of moving by its update.
    """

    clocked: ClassVar[bool] = True
    drops: ClassVar[bool] = False
    mixes: ClassVar[bool] = False

    @property
    def stale(self) -> bool:
        """Whether updates may start from older models than the one that they change."""
        return False

    @property
    def real(self) -> bool:
        """Whether seconds are those of the real clock, on which devices are imitated."""
        return False

    @property
    def races(self) -> bool:
        """Whether the order of the updates comes about on the real clock: ranks train and wait for nobody."""
        return self.real and self.stale

    @property
    def updates(self) -> int:
        """Updates of a step; 0: as many as take part."""
        return 0

    def misfit(self, clients: int, participation: float) -> str:
        """Return why it cannot be with so many clients, and what to do; empty where it can."""
        return ""

    def steps(self, given: Federated, first: int) -> Iterator[Step]:
        """Yield all steps from the first (0-based) on, without end."""
        raise NotImplementedError

    def weights(self, fresh: Floats, divisor: float, staleness: Ints) -> tuple[Floats, float]:
        """Return what updates count in a step, float64 [k], and what their sum is divided by.

        Parameters
        ----------
        fresh, divisor : float64 [k], float
            The same where none is stale.
        staleness : int64 [k]
        """
        return fresh, divisor


class ClockOptions(ScheduleOptions):
    """Base of the options of schedules that know two clocks."""

    added: ClassVar[frozenset[str]] = frozenset({"clock"})
    clock: Literal["virtual", "real"] = "virtual"
    """Whether devices take the seconds of a model, or measured ones, where slow devices are imitated by
    waiting. With "real" a buffer takes updates as ranks hand them in, and no rank waits for another."""

    @property
    def real(self) -> bool:
        """See `ScheduleOptions`."""
        return self.clock == "real"


def finished(given: Federated, clients: Ints, begin: int) -> Ints:
    """Return when each client that begins then is through, int64 [k] nanoseconds."""
    if given.among is not None:
        given = replace(given, work=given.among(clients))
    return np.array([given.end(int(client), begin) for client in clients], np.int64)


def polynomial(staleness: int, exponent: float = 0.5) -> float:
    """Return what an update that is tau steps old counts: (1 + tau)^-exponent (Nguyen et al. 2022: 0.5)."""
    return float((1.0 + staleness) ** -exponent)


def count_of(share: float, clients: int) -> int:
    """Return how many clients a share of them is, rounded, one at least."""
    return max(1, int(share * clients + 0.5))
