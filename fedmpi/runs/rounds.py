"""The round: train, report, decide, average, evaluate (the steps of docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.program import Ints
from fedmpi.case.reductions import SecureOptions
from fedmpi.case.schema import Case
from fedmpi.client import training
from fedmpi.client.deltas import Delta, Row, on_host
from fedmpi.client.federation import Federation
from fedmpi.client.states import States
from fedmpi.comm.world import World
from fedmpi.errors import Diverged, TooFewLeft
from fedmpi.exchange import dropouts
from fedmpi.exchange.aggregation import gather_rows, scatter_rows
from fedmpi.exchange.chain import Chain
from fedmpi.exchange.dropouts import Dropouts, Step
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.messages import ClientTable, Gathered
from fedmpi.exchange.meter import NOTHING, Energy, Meter
from fedmpi.exchange.network import ServerNetwork
from fedmpi.exchange.planning import Planner
from fedmpi.exchange.preparation import Prepared, prepare
from fedmpi.exchange.schedule import Schedule
from fedmpi.exchange.server import Known
from fedmpi.exchange.updates import Updates
from fedmpi.heterogeneity.agreement import domains_of
from fedmpi.programs.hook_checks import digest
from fedmpi.programs.hooks import Hooks
from fedmpi.runs import evaluation
from fedmpi.runs.ahead import Ahead
from fedmpi.runs.checkpoints import Saved
from fedmpi.runs.consensus import Consensus
from fedmpi.runs.evaluation import Evaluator
from fedmpi.runs.imitation import Imitation
from fedmpi.runs.patience import Patience
from fedmpi.runs.race import Race
from fedmpi.runs.reporting import Found, Reporter, RoundReport
from fedmpi.runs.signals import StopRequest
from fedmpi.schedules.recorded import Order
from fedmpi.store.schema import SECURE_STEPS


class Rounds:
    """Runs rounds on this rank's clients.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    world : World
    federation : Federation
        All clients.
    states : States
        Those that this rank hosts.
    energy : Energy, optional
        Measured where it is given.
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        world: World,
        federation: Federation,
        states: States,
        energy: Energy = NOTHING,
    ) -> None:
        self.case, self.algorithm, self.world, self.states = case, algorithm, world, states
        self.clients, self.weights = states.clients, algorithm.weights(federation.weights)
        self.names = [split.name for split in federation.partition.clients]
        self.group = algorithm.groups(federation.num_clients)
        if case.topology.gossips:  # each client has a model of its own
            self.group = np.arange(federation.num_clients)
        algorithm.begin(states.trained, federation.num_clients, ServerNetwork(case, states.shape))
        algorithm.where.names = self.names
        steps = tuple(SECURE_STEPS) if case.reduction.secret else ()
        self.meter = Meter(world.collectives, algorithm.where, steps, energy)
        self._dropouts = Dropouts(case.reduction.dropouts, case.seed, federation.num_clients)
        sampled = len(algorithm.participants(case.seed, 0, federation.num_clients, case.participation))
        population = federation.partition.population
        clients = federation.num_clients if population is None else population.size
        may_leave, places = self._dropouts.possible, (clients, sampled)
        self._chain = Chain(
            case, algorithm, world, states, self.meter, self.weights, *places, announces=may_leave
        )
        self.exchange, self._answers = self._chain.exchange, self._chain.answers(federation.weights)
        domains = domains_of([federation.raws[each.dataset].name for each in federation.partition.clients])
        knows = (case.seed, case.optimizer.lr, algorithm, states.messages, states.tells)
        counts = (federation.weights, self.weights, domains, states.trained, states.size)
        self._planner = Planner(Known(*knows, *counts, lambda group: on_host(self.exchange.models[group])))
        sizes = np.full(federation.num_clients, states.messages.nbytes, np.int64)
        self._training = ClientTable(
            world.collectives, states.hosts, training.columns_of(algorithm), header=2, flags=sizes
        )
        self._counts = self._chain.totals(training.COUNTS)
        scored = self._chain.totals(evaluation.COUNTS)
        self._evaluator = Evaluator(case, world, federation, states, self.meter, scored)
        self._patience = Patience(case.evaluation.patience, federation.task.metrics[0])
        place = case, algorithm, federation, states
        self._schedule = Schedule(*place, self.weights, self._chain.expected_bytes)
        self._ahead: Ahead | None = None
        if case.schedule.stale and world.size > 1:
            self._ahead = Ahead(self._schedule, states, self._trained, world.size)
        self._reporter = Reporter(case, algorithm, self._evaluator, self._chain, self._schedule, self.meter)
        self._consensus: Consensus | None = None
        if case.topology.gossips:
            self._consensus = Consensus(world, states, self.meter, self._evaluator)
        self._prepared: Prepared | None = None
        self.meanwhile: Callable[[], None] | None = None
        """Called while devices train, where they do so without the host, and at most once in a training."""
        self._imitation: Imitation | None = None
        if case.schedule.real and not case.schedule.stale:
            self._imitation = Imitation(case, world, self.meter, [*self.clients], len(self.names))

    def begin(self, saved: Saved | None) -> None:
        """Start all clients from the server's model, or from a checkpoint."""
        self.meter.start_count()  # what the ranks asked each other before belongs to no round
        initial = self.states.start(self.case.seed)
        if saved is not None:
            self.states.restore(saved.states)
            self._restore_server(saved.server)
        if self.algorithm.communicates and saved is not None:
            self.exchange.restore(self.group, self.states.group_models(self.group))
        elif self.algorithm.communicates:
            self.exchange.begin(self.group, initial, self.clients)

    def _restore_server(self, arrays: Mapping[str, npt.NDArray[Any]] | None) -> None:
        """Take the groups from a checkpoint on every rank, the algorithm's state on rank 0."""
        if arrays is not None:
            self.group = np.asarray(arrays["group"], np.int64)
            self.algorithm.restore(arrays)
            self._chain.restore(arrays)
            self._patience.restore(arrays)
        self.world.collectives.bcast(self.group, kind="groups")

    def prepare(self, federation: Federation, stop: StopRequest, *, again: bool = False) -> Prepared | None:
        """Run the clients' programs before round 1, if the algorithm has them.

        Parameters
        ----------
        federation : Federation
            All clients.
        stop : StopRequest
            Ends the phase.
        again : bool, optional
            The run goes on from a checkpoint: round 1 has the phase's seconds already.
        """
        if not self.algorithm.prepares:
            return None
        with self.meter.before_rounds("wait", counted=not again):
            place = (self.world.collectives, federation, self.states, self.meter)
            self._prepared = prepare(self.case, self.algorithm, *place, stop.raise_if_requested)
        self.meter.executed_flops += self._prepared.executed_flops
        return self._prepared

    def run(self, round: int, *, stop: StopRequest, checkpoint: bool) -> tuple[RoundPlan, RoundReport | None]:
        """Run one round; it decides from this rank's `stop` and rank 0's `checkpoint` for all ranks.

        A stop that is requested while the rank trains counts for this round.

        Raises
        ------
        Diverged
            On every rank, when a participant's loss or update is not finite.
        RankFailed
            On this rank or on all: a hook of the algorithm returned an invalid value.
        TooFewLeft
            On every rank, if the case asks for it.
        """
        if self._imitation is not None:
            self._imitation.begin()
        found = self._begin_round(round)
        trained = self._train(round, found.working, found.steps)
        if self._imitation is not None:
            self._imitation.wait(trained.rows)
        found.trained = self._reported(stop, found.participants, trained)
        plan = self._decide(found, trained.deltas, checkpoint)
        if plan.lost_client >= 0:
            raise self._diverged(round - 1, plan.lost_client)
        if plan.failed_client >= 0:
            raise self._diverged(round, plan.failed_client)
        if plan.ended:
            self._evaluator.last_round = round
        self.exchange.regroup(self.group, plan.group)
        self.group = plan.group
        self._average(plan, found.participants, trained.deltas)
        if self.case.schedule.races:
            self._schedule.check(self.exchange.models[0] if 0 in self.clients else None)
        self._tell()
        if self._imitation is not None:
            self._schedule.measured = self._imitation.seconds()
        found.notes = self._lost_sums(plan, found.participants)
        if self._counts is not None:
            with self.meter.phase("communicate"):
                found.totals = self._counts.sums(found.participants, trained.counts)
        if self._consensus is not None:
            found.further = self._consensus.run(round, found.working, self.exchange.models)
        found.closing = self._evaluator.run(round, found.working)
        if plan.checkpoint or plan.stop or round == self._evaluator.last_round:
            self._refuse_lost_scores(round)
        report = self._reporter.report(found, self.group, self._planner.decided, self._prepared)
        if report is not None:
            self._patience.note(report)
        return plan, report

    @property
    def ended(self) -> bool:
        """Whether the run has ended before its last round, as rank 0 knows."""
        return self._patience.ended

    def _begin_round(self, round: int) -> Found:
        """Draw who takes part, and of them who trains (step 1)."""
        self.algorithm.begin_round(round)
        sampled = self.states.draw(self.case.seed, round)
        participants = self._schedule.begin(round).participants
        steps = self._dropouts.of(round) if self._dropouts.possible else None
        working = participants if steps is None else participants[steps[participants] > Step.TRAINING]
        return Found(round, participants, working, steps, sampled)

    def _train(self, round: int, working: Ints, steps: Ints | None) -> training.Trained:
        """Train this rank's participants; the chain then alters what they send (step 2)."""
        with self.meter.phase("train"):
            if self._ahead:
                trained = self._ahead.train(working)
            else:
                trained = self._trained(self._schedule.streams(working), working)
            self.meter.executed_flops += trained.executed_flops
            self._chain.alter(round, working, self._updates(trained, steps))
            self._schedule.shift(trained, self.exchange.models, self.group)
        return trained

    def _trained(self, streams: Ints, clients: Ints) -> training.Trained:
        """Train the hosted ones of these clients, each with the random numbers of its round (0-based)."""
        place, on_device = (self.case, self.algorithm, self.states), self.exchange.on_device
        rounds = np.unique(streams).tolist() or [self.algorithm.where.round]
        first, *others = (
            training.train(*place, round, clients[streams == round], self.weights, on_device, self.meanwhile)
            for round in rounds
        )
        for other in others:
            first = first.joined(other)
        return first

    @property
    def order(self) -> Order | None:
        """The order of the steps, as far as one was recorded."""
        return self._schedule.order

    def race(self, known: Order, stop: StopRequest, save: Callable[[Order], None]) -> Order | None:
        """Return on rank 0 the order in which updates arrive by the real clock (a collective call).

        Parameters
        ----------
        known : Order
            Of the rounds until now.
        stop : StopRequest
            Ends it before its last step.
        save : callable
            Keeps the order so far; called on rank 0, when a checkpoint is due.
        """

        def train(round: int, clients: Ints) -> training.Trained:
            return self._trained(np.full(len(clients), round), clients)

        place = self.case, self.algorithm, self.world, self.states, self._schedule
        race = Race(*place, self.weights, train, lambda: stop.requested, save)
        first = {0: self.clients[0].received()} if 0 in self.clients else {}
        of_all = self.world.collectives, self.states.hosts, np.zeros(1, np.int64)
        models = gather_rows(*of_all, first, self.states.size)  # rank 0 has none where one rank hosts all
        return race.run(None if models is None else models[0], known)

    def follow(self, order: Order) -> None:
        """Take steps in an order that was recorded, without waiting."""
        self._schedule.follow(order)
        self._imitation = None

    def _reported(self, stop: StopRequest, participants: Ints, trained: training.Trained) -> Gathered | None:
        """Gather what the clients report of their training on rank 0 (step 3)."""
        with self.meter.phase("wait"):
            header = [float(stop.requested), digest(participants)]
            gathered = self._training.gather(header, trained.rows, trained.reports, "training")
        if gathered is not None:
            gathered.headers[0, 0] = float(stop.requested)  # rank 0 may have been asked while it waited
            self.algorithm.check_agreement(gathered.headers[:, 1])
        return gathered

    def _lost_sums(self, plan: RoundPlan, participants: Ints) -> tuple[str, ...]:
        """Return a line for each group that lost its sum to dropouts; end the run if the case asks for it."""
        if plan.steps is None:
            return ()
        lines = dropouts.lost_sums(plan.steps, participants, plan.group, self.exchange.survivors)
        lines = [f"round {self.algorithm.where.round + 1}: {line}" for line in lines]
        options = self.case.reduction
        if lines and isinstance(options, SecureOptions) and options.below_threshold == "stop":
            raise TooFewLeft(f'{lines[0]}; below_threshold = "stop" ends the run')
        return tuple(lines)

    def _updates(self, trained: training.Trained, steps: Ints | None) -> Updates:
        """Return what they send, for the chain to change."""

        def received(client: int) -> Row:
            model: Row = on_host(self.exchange.models[int(self.group[client])])
            return model

        return Updates(
            trained,
            {number: place for place, number in enumerate(self.clients)},
            self.states.trained,
            received if self.algorithm.averages_models else None,
            lambda number: training.heaviest(self.algorithm, self.clients[number], self.weights),
            () if steps is None else np.flatnonzero(steps <= Step.UPLOAD).tolist(),
        )

    def _diverged(self, round: int, client: int) -> Diverged:
        return Diverged(
            f"round {round + 1}: client {self.names[client]} has a NaN or infinite loss or update"
        )

    def _refuse_lost_scores(self, round: int) -> None:
        """Raise Diverged on every rank when a client's loss on the new models is NaN or infinite.

        Where nothing is saved after a round, the next round's plan carries the error instead.
        """
        verdict = self.world.collectives.bcast(np.array([self._evaluator.lost], np.int64), "verdict")
        if verdict[0] >= 0:
            raise self._diverged(round, int(verdict[0]))

    def _decide(self, found: Found, deltas: Mapping[int, Delta], checkpoint: bool) -> RoundPlan:
        """Have rank 0 make the round's plan, and answer on all ranks what its program asks for (step 4)."""
        plans, answer, message = None, None, np.empty(self._planner.size, np.int64)
        if found.trained is not None:
            ended = self._patience.decide(found.round)
            due = checkpoint or (ended and self.case.checkpoints == "kept")
            now = found.round, self.group, found.trained, found.working
            plans = self._planner.plans(*now, lost=self._evaluator.lost, checkpoint=due, ended=ended)
        while True:
            if plans is not None:
                with self.meter.phase("server"):
                    message = plans.send(answer).pack()
            with self.meter.phase("communicate" if self.world.is_root else "wait"):
                self.world.collectives.bcast(message, "plan")
            plan = replace(RoundPlan.unpack(message, len(self.names)), steps=found.steps)
            if not plan.request:
                return self._schedule.weigh(plan)
            with self.meter.phase("server" if self.world.is_root else "wait"):
                answer = self._answers.answer(plan, found.participants, deltas)

    def _average(self, plan: RoundPlan, participants: Ints, deltas: dict[int, Delta]) -> None:
        """Take steps 5 to 7: new group models, and from them the shared part of every hosted client."""
        if not self.algorithm.communicates:
            return
        if plan.weights is None:
            summed = participants[plan.marks[plan.group[participants]] == 0]
            self.algorithm.check_averages(plan.group, self.weights, summed)
        with self.meter.phase("communicate"):
            weights = self.weights if plan.weights is None else plan.weights
            moves = {} if self._planner.decided is None else self._planner.decided.moves
            self.exchange.run(plan, participants, weights, deltas, moves)
            moves.clear()
            self._chain.settle(participants, plan.group, plan.steps)
            groups = {number: int(plan.group[number]) for number in self.clients}
            if "groups" in self.algorithm.decides:  # all are new: without a sum clients keep their models
                groups = {n: group for n, group in groups.items() if self.exchange.survivors.get(group)}
            models = {
                group: torch.as_tensor(self.exchange.models[group]).to(self.states.device)
                for group in dict.fromkeys(groups.values())
            }
            of_client = {number: models[group] for number, group in groups.items()}
            for clients in self.states.groups:
                clients.receive(of_client)

    def _tell(self) -> None:
        """Send to all clients what the algorithm tells them; where it is NaN they keep what they have."""
        for name, message in self.states.tells.messages.items():
            decided, shape = self._planner.decided, self.states.tells.shape(name)
            whole = None if decided is None else decided.told[name]
            with self.meter.phase("communicate" if self.world.is_root else "wait"):
                if message.personal:
                    new = scatter_rows(self.world.collectives, self.states.hosts, whole, shape, "told")
                else:
                    new = np.empty(shape, np.float32) if whole is None else whole.copy()
                    self.world.collectives.bcast(new, "told")
            of_rank = torch.from_numpy(new).to(self.states.device)
            rows = of_rank if message.personal else [of_rank] * len(self.clients)
            for client, row in zip(self.clients.values(), rows, strict=True):
                held = client.told[name]
                held.copy_(torch.where(torch.isnan(row), held, row))

    def server_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a checkpoint holds of the server: groups, and the algorithm's own state."""
        own = {"group": np.asarray(self.group, np.int64)} | self._patience.state()
        return own | self._chain.server_state() | self.algorithm.server_state()
