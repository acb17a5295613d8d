"""Who takes part in each step of the server, from which model, and what it counts (`fedmpi.schedules`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.case.schema import Case
from fedmpi.client.deltas import Delta, Row, on_host
from fedmpi.client.expected import training_flops
from fedmpi.client.federation import Federation
from fedmpi.client.states import States
from fedmpi.client.training import TRAINING, Trained
from fedmpi.comm import reductions
from fedmpi.devices.base import NANOSECONDS
from fedmpi.errors import RankFailed
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.kernels.vectors import digest
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hooks import Hooks
from fedmpi.schedules.base import Federated, Step, Work
from fedmpi.schedules.recorded import Order
from fedmpi.store.schema import DEVICE_SECONDS, STALENESS, VIRTUAL_CLOCK, WASTED_FLOPS, Field

_FAR = 256
"""Steps that are looked ahead."""

Ints = npt.NDArray[np.int64]

_FINITE, _EXPONENT = TRAINING.index("finite"), TRAINING.index("exponent")


def fields_of(case: Case) -> tuple[Field, ...]:
    """Return the fields of a record with a virtual clock."""
    clock = (VIRTUAL_CLOCK, DEVICE_SECONDS) if _clocked(case) else ()
    stale = (STALENESS,) if case.schedule.stale else ()
    return (*clock, *stale, *((WASTED_FLOPS,) if case.schedule.drops else ()))


def _clocked(case: Case) -> bool:
    """Return whether there is a virtual clock."""
    return case.devices.clocked and not case.schedule.real


def mark(model: Row) -> np.uint64:
    """Return a digest of a model."""
    return np.uint64(digest(np.ascontiguousarray(model).view(np.uint32)))


def refuse_endless(case: Case, federation: Federation, nbytes: int) -> None:
    """Raise BadInput for devices on which rounds of models of so many bytes do not end."""
    devices = case.devices.make(case.seed, federation.num_clients) if _clocked(case) else None
    for client in range(0 if devices is None else federation.num_clients):
        assert devices is not None
        seconds = devices.seconds(client, training_flops(case, federation, client), nbytes, nbytes)
        devices.refuse_endless(client, case.rounds * sum(seconds))


class Schedule:
    """The steps of a run, the same on every rank.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    federation : Federation
    states : States
        Of the clients that this rank hosts.
    weights : int64 [clients]
        What updates count where none is stale and the algorithm does not decide it.
    traffic : callable
        Returns the bytes that each client sends, and gets, where these take part, int64 [2, clients].

    Attributes
    ----------
    devices : Devices or None
    step : Step
        That was begun last.
    order : Order or None
        That was recorded, as far as it is known.
    measured : float or None
        Seconds of the step, where it is timed.
    """

    step: Step

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        federation: Federation,
        states: States,
        weights: Ints,
        traffic: Callable[[Ints], Ints],
    ) -> None:
        self._options, self._clients, self._weights = case.schedule, states.clients, weights
        self._samples, self._first = federation.weights, states.trained
        clients = federation.num_clients
        devices = case.devices.make(case.seed, clients) if _clocked(case) else None
        self._flops = np.zeros(clients, np.int64)
        work, among = None, None
        if devices is not None:
            self._flops[:] = [training_flops(case, federation, client) for client in range(clients)]

            def work_among(participants: Ints) -> Work:
                table = enumerate(zip(self._flops.tolist(), *traffic(participants).tolist(), strict=True))
                each = [devices.work(client, *needs) for client, needs in table]
                return Work(*np.array(each, np.int64).T)

            work = work_among(np.arange(clients))
            among = work_among if case.topology.gossips and case.participation < 1 else None

        def sample(round: int, num_clients: int, share: float) -> Ints:
            return algorithm.participants(case.seed, round, num_clients, share)

        self.devices = devices
        place = case.participation, sample, devices, work, among, case.rounds
        self._given = Federated(clients, case.seed, *place)
        self._steps: Iterator[Step] | None = None
        self.order: Order | None = None
        self.measured: float | None = None
        self._round, self._rounds, self._coming = 0, case.rounds, deque[Step]()

    def follow(self, order: Order) -> None:
        """Take the steps of an order that was recorded, from the next one on."""
        self.order, self._steps = order, None

    def begin(self, round: int) -> Step:
        """Return the step of a round (0-based), the first or the next after the last that was begun.

        Its participants hold the models that they start from.
        """
        if self._steps is None:
            order = self.order if self._options.stale else None
            steps = self._options.steps(self._given, round) if order is None else order.steps(round)
            self._steps = steps
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

        Each comes behind the round whose random numbers it uses; steps far off are left out.
        """
        for place in range(min(_FAR, self._rounds - 1 - self._round)):
            if place == len(self._coming):
                assert self._steps is not None
                if (step := next(self._steps, None)) is None:
                    return
                self._coming.append(step)
            step = self._coming[place]
            for client in step.participants.tolist():
                if step.staleness[client] > place:
                    yield self._stream(step, self._round + 1 + place, client), client

    def check(self, model: Delta | None) -> None:
        """Refuse the step's model, if this rank has it, unless it is the one that was made on the real clock.

        Raises
        ------
        RankFailed
            It is another.
        """
        known = self.order.digests if self.order is not None else np.zeros(0, np.uint64)
        if model is not None and len(known) and mark(on_host(model)) != known[self._round]:
            raise RankFailed(
                f"round {self._round + 1}: the model differs from the one that was made on the real clock"
            )

    def streams(self, clients: Ints) -> Ints:
        """Return the rounds (0-based) whose random numbers these participants use, int64 [k]."""
        found = [self._stream(self.step, self._round, client) for client in clients.tolist()]
        return np.array(found, np.int64)

    def _stream(self, step: Step, round: int, client: int) -> int:
        return round if step.streams is None else int(step.streams[client])

    def shift(self, trained: Trained, models: Mapping[int, Delta], group: Ints) -> None:
        """Have the updates of the step be what the server adds: see `added`.

        Parameters
        ----------
        trained : Trained
            Changed in place.
        models : mapping of int to float32 [size]
            Present models by group.
        group : int64 [clients]
        """
        if not self._options.stale:
            return
        rows = {number: place for place, number in enumerate(self._clients)}
        for number, delta in trained.deltas.items():
            start, now = self._clients[number].start, on_host(models[int(group[number])])
            assert start is not None
            tau, row = int(self.step.staleness[number]), trained.rows[rows[number]]
            moved, bound = self.added(number, tau, on_host(delta), on_host(start), now)
            trained.deltas[number] = moved
            row[_FINITE] *= bool(np.isfinite(moved).all())
            if row[_FINITE]:
                row[_EXPONENT] = max(row[_EXPONENT], bound)  # coefficients may be larger

    def added(self, client: int, staleness: int, update: Row, start: Row, now: Row) -> tuple[Row, int]:
        """Return what a client's update adds to a model, and its bound, as `reductions.weighted_exponent`.

        What is averaged, in place of added, leads from the present model to the client's: running statistics,
        which would leave their range by updates of older ones, and where models are mixed all parameters;
        statistics then move the same part of the way.

        Parameters
        ----------
        client, staleness : int
        update, start, now : float32 [size]
            What came; the model that it starts from, if it is stale; the present one.
        """
        moved = update.copy()
        if staleness:
            places = slice(0 if self._options.mixes else self._first, None)
            moved[places] += (start - now)[places]
        if self._options.mixes:
            part = self._options.weights(np.ones(1), 1.0, np.array([staleness]))[0]
            moved[self._first :] *= part.astype(np.float32)
        heaviest = max(int(self._samples[client]), int(self._weights[client]))
        return moved, reductions.weighted_exponent(moved, heaviest)

    def weigh(self, plan: RoundPlan) -> RoundPlan:
        """Return the plan in which updates count by their staleness."""
        if not self._options.stale:
            return plan
        used, found, decided = self.step.participants, np.zeros(len(self._weights)), plan.weights is not None
        fresh = (self._weights if plan.weights is None else plan.weights)[used].astype(np.float64)
        divisor = float(fresh.sum()) if plan.divisor is None else float(plan.divisor[plan.group[used[0]]])
        given = self._options.weights(fresh, divisor, self.step.staleness[used])
        found[used], divisor = checks.round_weights(*given, len(used))
        plan = replace(plan, weights=found, divisor=np.full(len(found), divisor))
        if not decided:
            return plan
        counts = found[used] > 0
        grown = (np.frexp(found[used])[1] - np.frexp(fresh)[1])[counts].max().clip(0)
        moves = plan.exponent != reductions.ZERO_EXPONENT
        return replace(plan, exponent=plan.exponent + grown * moves)

    def seconds(self) -> float | None:
        """Return the seconds of the step, virtual or real ones; None without a clock."""
        if self.order is not None:
            return float(self.order.seconds[self._round])
        return self.measured if self.devices is None else (self.step.clock - self.step.begin) / NANOSECONDS

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
