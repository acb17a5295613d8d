"""Asynchronous training by the real clock: ranks train and hand in updates, and rank 0 makes models of them.

Nobody waits for a straggler. What is kept is the order of the updates; the rounds of the record are then
computed in that order, with all scores, and must come to the same models.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.case.schema import Case
from fedmpi.client.deltas import on_host
from fedmpi.client.states import States
from fedmpi.client.training import TRAINING, Trained
from fedmpi.clock import Stopwatch
from fedmpi.comm import reductions
from fedmpi.comm.board import Board, HandedIn
from fedmpi.comm.collectives import alone
from fedmpi.comm.world import World
from fedmpi.devices.base import slowness
from fedmpi.exchange.aggregation import Buffers, Plain
from fedmpi.exchange.group_models import Exchange, RoundPlan
from fedmpi.exchange.schedule import Schedule, mark
from fedmpi.programs.hooks import Hooks
from fedmpi.schedules.base import Step
from fedmpi.schedules.recorded import Order, Recorder

Ints = npt.NDArray[np.int64]
Row = npt.NDArray[np.float32]
Train = Callable[[int, Ints], Trained]

_EXPONENT, _FINITE = (TRAINING.index(name) for name in ("exponent", "finite"))


@dataclass(order=True)
class _Due:
    """An update that a rank hands in at a time: exponent, whether all is finite, and the update."""

    at: float
    client: int
    version: int
    sent: tuple[int, bool, Row] = field(compare=False)


@dataclass(eq=False)
class Race:
    """A run by the real clock, up to the order of its updates.

    Parameters
    ----------
    case, algorithm, world, states, schedule
        Of the run.
    weights : int64 [clients]
        Of the clients in averages.
    train : callable
        Trains hosted clients as participants of a round (0-based).
    stopped : callable
        Returns whether this rank is asked to stop.
    save : callable
        Keeps the order so far; called on rank 0, when a checkpoint is due.
    """

    case: Case
    algorithm: Hooks
    world: World
    states: States
    schedule: Schedule
    weights: Ints
    train: Train
    stopped: Callable[[], bool]
    save: Callable[[Order], None]

    def run(self, initial: Row | None, known: Order) -> Order | None:
        """Return the order on rank 0 (a collective call); clients and server are then as they were.

        It has not ended where the run was asked to stop.

        Parameters
        ----------
        initial : float32 [size] or None
            The present model; on rank 0.
        known : Order
            The steps until then, which made it.
        """
        board = Board(self.world, self.states.size, len(self.weights))
        if initial is not None:
            board.publish(len(known), initial, np.zeros(len(self.weights), np.int64))
        self.world.collectives.wait_for_all()
        watch, clients, server = Stopwatch(), self.states.saved(), self.algorithm.server_state()
        server = {name: values.copy() for name, values in server.items()}
        try:
            order = self._work(board) if initial is None else self._serve(board, initial, known)
            self.world.collectives.wait_for_all()
        finally:
            self.states.restore(clients)
        board.close()
        spent = self.world.collectives.gatherv(np.array([watch.cpu]), [1] * self.world.size)
        if spent is None or order is None:
            return None
        self.algorithm.restore(server)
        return replace(order, cpu_seconds=order.cpu_seconds + float(np.sum(spent)))

    def _work(self, board: Board) -> Order | None:
        """Train hosted clients in turn, each from the newest model, until rank 0 ends it.

        None begins again before its last update is used. What a slow device has trained is handed in later.
        """
        clients = len(self.weights)
        slower = slowness(self.case.devices.make(self.case.seed, clients), clients)
        waiting, made = list(self.states.clients), dict.fromkeys(self.states.clients, 0)
        places, due = {client: place for place, client in enumerate(waiting)}, list[_Due]()
        asked = False
        while waiting and (used := board.used()) is not None:
            if self.stopped() and not asked:
                board.ask_to_stop()
                asked = True
            if due and due[0].at <= time.perf_counter():
                first = heapq.heappop(due)
                board.hand_in(first.client, first.version, *first.sent)
                continue
            fresh = next((client for client in waiting if made[client] == used[client]), None)
            if fresh is None:  # all are at work, or what they sent waits for others' updates
                time.sleep(0.001)
                continue
            if (found := board.read()) is None:
                break
            version, model = found
            waiting.remove(fresh)
            waiting.append(fresh)
            made[fresh] += 1
            board.begin(min([version, *(each.version for each in due)]))
            start = time.perf_counter()
            self.states.clients[fresh].receive(torch.from_numpy(model).to(self.states.device))
            done = self.train(version, np.array([fresh]))
            now, row = time.perf_counter(), done.rows[places[fresh]]
            finite = bool(row[_FINITE])
            sent = int(row[_EXPONENT]) if finite else 0, finite, on_host(done.deltas[fresh])
            heapq.heappush(due, _Due(now + (slower[fresh] - 1.0) * (now - start), fresh, version, sent))
        return None

    def _serve(self, board: Board, initial: Row, known: Order) -> Order:
        """Make a model of so many updates after another, in the order in which they come."""
        rounds, size, exchange = self.case.rounds, self.case.schedule.updates, self._exchange(initial)
        recorder, pending, used = Recorder(known), list[HandedIn](), np.zeros(len(self.weights), np.int64)
        models, finite, saved = {recorder.steps: initial.copy()}, True, time.monotonic()
        while finite and recorder.steps < rounds and not (self.stopped() or board.asked()):
            pending += self._taken(board)
            if len(pending) < size:
                continue
            batch, pending = pending[:size], pending[size:]
            finite = self._step(recorder.steps, batch, exchange, models)
            model = np.array(exchange.models[0])
            recorder.add({each.client: each.version for each in batch}, mark(model))
            used[[each.client for each in batch]] += 1
            if not finite:  # the round of the record says whose update it was
                break
            board.publish(recorder.steps, model, used)
            self.world.collectives.note("models", model, receiver=None)
            oldest = min([board.oldest(), *(each.version for each in pending)])
            models = {version: kept for version, kept in models.items() if version >= oldest}
            models[recorder.steps] = model
            if time.monotonic() - saved >= self.case.checkpoint_seconds:
                self.save(recorder.order(ended=False))
                saved = time.monotonic()
        board.end()
        return recorder.order(ended=not finite or recorder.steps == rounds)

    def _exchange(self, initial: Row) -> Exchange:
        """Return what makes models on rank 0 alone, which has all updates."""
        collectives, hosts = alone(), np.zeros(len(self.weights), np.int64)
        sums = Plain(collectives, hosts, self.case.reduction, self.states.size, Buffers())
        sizes = self.states.size, self.states.trained
        exchange = Exchange(collectives, hosts, sums, self.algorithm, *sizes, Buffers())
        exchange.models = {0: initial.copy()}
        return exchange

    def _taken(self, board: Board) -> list[HandedIn]:
        """Return the updates that came since, and tell an audit of them."""
        found = board.take()
        for each in found:
            self.world.collectives.note("update", each.update, each.rank, client=each.client)
        return found

    def _step(self, version: int, batch: list[HandedIn], exchange: Exchange, models: dict[int, Row]) -> bool:
        """Make the next model of the server, if all updates are finite; return whether they are."""
        clients = len(self.weights)
        used = np.array(sorted(each.client for each in batch), np.int64)
        zero, none = np.zeros(clients, np.int64), np.zeros(0, np.int64)
        tau, deltas, bounds = zero.copy(), dict[int, Row](), []
        for each in batch:
            tau[each.client] = version - each.version
            place = models[each.version], models[version]
            update, bound = self.schedule.added(each.client, version - each.version, each.update, *place)
            deltas[each.client] = update
            bounds.append(max(each.exponent, bound))
        exponent = np.full(clients, reductions.ZERO_EXPONENT, np.int64)
        exponent[0] = max(bounds)
        self.algorithm.begin_round(version)
        self.schedule.step = Step(used, tau, none, 0, 0, zero, zero.astype(float))
        plan = RoundPlan(zero, exponent, zero, -1, -1, checkpoint=False, stop=False)
        plan = self.schedule.weigh(plan)
        finite = all(each.finite for each in batch) and all(np.isfinite(row).all() for row in deltas.values())
        if finite:
            assert plan.weights is not None
            exchange.run(plan, used, plan.weights, deltas, {})
        return finite
