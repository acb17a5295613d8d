"""Who takes part in each step of the server, from which model, and what it counts (`fedmpi.schedules`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.case.schema import Case
from fedmpi.client.deltas import Delta, on_host
from fedmpi.client.expected import training_flops
from fedmpi.client.federation import Federation
from fedmpi.client.states import States
from fedmpi.client.training import TRAINING, Trained
from fedmpi.comm import reductions
from fedmpi.devices.base import NANOSECONDS
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hooks import Hooks
from fedmpi.schedules.base import Federated, Step, Work
from fedmpi.store.schema import DEVICE_SECONDS, STALENESS, VIRTUAL_CLOCK, WASTED_FLOPS, Field

_FAR = 256
"""Steps that are looked ahead."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def fields_of(case: Case) -> tuple[Field, ...]:
    """Return the fields of a record with a virtual clock."""
    clock = (VIRTUAL_CLOCK, DEVICE_SECONDS) if case.devices.clocked else ()
    stale = (STALENESS,) if case.schedule.stale else ()
    return (*clock, *stale, *((WASTED_FLOPS,) if case.schedule.drops else ()))


class Schedule:
    """The steps of a run, the same on every rank.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    federation : Federation
    states : States
        Of the clients that this rank hosts.
    traffic : int64 [2, clients]
        Bytes of a round that each client sends, and gets.

    Attributes
    ----------
    devices : Devices or None
    step : Step
        That was begun last.
    """

    step: Step

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        federation: Federation,
        states: States,
        traffic: Ints,
    ) -> None:
        self._options, self._clients = case.schedule, states.clients
        clients, devices = federation.num_clients, case.devices.make(case.seed, federation.num_clients)
        self._flops = np.zeros(clients, np.int64)
        work = None
        if devices is not None:
            self._flops[:] = [training_flops(case, federation, client) for client in range(clients)]
            table = enumerate(zip(self._flops.tolist(), *traffic.tolist(), strict=True))
            each = [devices.work(client, *needs) for client, needs in table]
            work = Work(*np.array(each, np.int64).T)

        def sample(round: int, share: float) -> Ints:
            return algorithm.participants(case.seed, round, clients, share)

        self.devices = devices
        self._given = Federated(clients, case.seed, case.participation, sample, devices, work)
        self._steps: Iterator[Step] | None = None
        self._round, self._rounds, self._coming = 0, case.rounds, deque[Step]()

    def begin(self, round: int) -> Step:
        """Return the step of a round (0-based), the first or the next after the last that was begun.

        Its participants hold the models that they start from.
        """
        if self._steps is None:
            self._steps = self._options.steps(self._given, round)
        self._round = round
        self.step = self._coming.popleft() if self._coming else next(self._steps)
        if self._options.stale:
            self._hand_out()
        return self.step

    def _hand_out(self) -> None:
        """Keep the model for those that begin with it, and give participants that with which they began."""
        for number in self.step.held.tolist():
            if number in self._clients:
                client = self._clients[number]
                assert client.start is not None
                client.start.copy_(torch.from_numpy(client.received()))
        for number in self.step.participants.tolist():
            if number in self._clients and self.step.staleness[number]:
                self.receive(number)

    def receive(self, client: int) -> None:
        """Have a hosted client that is under way hold the model with which it began."""
        start = self._clients[client].start
        assert start is not None
        self._clients[client].receive(start)

    def under_way(self) -> Iterator[tuple[int, int]]:
        """Yield clients that have begun and whose updates later steps use, with the first of these first.

        Each comes behind the number of the step that uses it; steps far off are left out.
        """
        for place in range(min(_FAR, self._rounds - 1 - self._round)):
            if place == len(self._coming):
                assert self._steps is not None
                self._coming.append(next(self._steps))
            step = self._coming[place]
            for client in step.participants.tolist():
                if step.staleness[client] > place:
                    yield self._round + 1 + place, client

    def shift(self, trained: Trained, models: Mapping[int, Delta], group: Ints) -> None:
        """Where models are mixed, have updates lead from the present model to the clients' models.

        Parameters
        ----------
        trained : Trained
            Changed in place.
        models : mapping of int to float32 [size]
            Present models by group.
        group : int64 [clients]
        """
        if not self._options.mixes:
            return
        rows = {number: place for place, number in enumerate(self._clients)}
        for number, delta in trained.deltas.items():
            if self.step.staleness[number]:
                start, now = self._clients[number].start, models[int(group[number])]
                assert start is not None
                shifted = on_host(delta) + (on_host(start) - on_host(now))
                trained.deltas[number] = shifted
                row = trained.rows[rows[number]]
                row[TRAINING.index("finite")] *= bool(np.isfinite(shifted).all())
                if row[TRAINING.index("finite")]:
                    row[TRAINING.index("exponent")] = reductions.weighted_exponent(
                        shifted, self._clients[number].weight
                    )

    def weigh(self, plan: RoundPlan, weights: Ints) -> RoundPlan:
        """Return the plan in which updates count by their staleness.

        Parameters
        ----------
        plan : RoundPlan
        weights : int64 [clients]
            What updates count where none is stale.
        """
        if not self._options.stale:
            return plan
        used, found = self.step.participants, np.zeros(len(weights))
        fresh = (weights if plan.weights is None else plan.weights)[used].astype(np.float64)
        given = self._options.weights(fresh, self.step.staleness[used])
        found[used], divisor = checks.round_weights(*given, len(used))
        return replace(plan, weights=found, divisor=np.full(len(weights), divisor))

    def seconds(self) -> float | None:
        """Return the virtual seconds of the step; None without a clock."""
        return None if self.devices is None else (self.step.clock - self.step.begin) / NANOSECONDS

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """Return the step's values of `fields_of`."""
        step, found = self.step, dict[str, npt.NDArray[Any]]()
        if self.devices is not None:
            found[VIRTUAL_CLOCK.name] = np.array(step.clock / NANOSECONDS)
            found[DEVICE_SECONDS.name] = step.busy / NANOSECONDS
        if self._options.stale:
            used = np.isin(np.arange(len(step.staleness)), step.participants)
            found[STALENESS.name] = np.where(used, step.staleness, -1).astype(np.int32)
        if self._options.drops:
            found[WASTED_FLOPS.name] = (step.wasted * self._flops).astype(np.int64)
        return found
