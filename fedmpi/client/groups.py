"""Clients trained one by one, or several at once by batched products on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.program import Change
from fedmpi.case.schema import Case
from fedmpi.client.client import Client, Training
from fedmpi.client.group_results import Tally, finite, flops_of, outcomes_of
from fedmpi.client.group_steps import GroupRows, Masks, Steps, step_numbers
from fedmpi.client.passes import Pass
from fedmpi.client.state import two_norm
from fedmpi.client.trainee import Trainee
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.transfer import DeviceWatch, Fetched
from fedmpi.kernels.captured import Captured
from fedmpi.kernels.grouped_batches import HostBatch
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.grouped_network import GroupedNetwork
from fedmpi.models.counts import ModelFlops
from fedmpi.models.outcome import Evaluation
from fedmpi.programs.hooks import Hooks
from fedmpi.tasks.base import Task

PendingTraining = Callable[[], dict[int, Training]]
PendingEvaluation = Callable[[], dict[int, Evaluation]]

_NOTHING: Int = np.zeros(0, np.int64)
"""Stands for the graphs of a client that takes no step."""

Models = Callable[[], dict[int, npt.NDArray[np.float32]]]


class Group:
    """Clients of one rank that train one after another; base of those that train together.

    Attributes
    ----------
    clients : sequence of Client
    asynchronous : bool
        Whether the host may start other groups before it awaits the results of this one.
    """

    asynchronous = False

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients = clients

    def train(self, case: Case, algorithm: Hooks, round: int, chosen: set[int]) -> PendingTraining:
        """Start the local training of the selected clients.

        Parameters
        ----------
        case : Case
        algorithm : Hooks
        round : int
            0-based.
        chosen : set of int
            Numbers of the round's participants; those of other groups are ignored.

        Returns
        -------
        callable
            Waits for the training and returns the result of each client by number.
        """
        results = {c.id: c.train_locally(case, algorithm, round) for c in self.clients if c.id in chosen}
        return lambda: results

    def evaluate(self, chosen: set[int]) -> PendingEvaluation:
        """Start the evaluation of those of its clients that are chosen."""
        results = {c.id: c.evaluate() for c in self.clients if c.id in chosen}
        return lambda: results

    def models(self) -> Models:
        """Start to bring all its clients' parameters to the host: `ClientState.all_parameters` by number."""
        return lambda: {client.id: client.all_parameters().cpu().numpy() for client in self.clients}

    def receive(self, models: Mapping[int, Tensor]) -> None:
        """Give its clients the models that are for them, by number: `ClientState.receive`."""
        for client in self.clients:
            if client.id in models:
                client.receive(models[client.id])


@dataclass(frozen=True)
class _Found:
    """What a group's training left, on its way to the host.

    Attributes
    ----------
    tally, watch
        Of all steps.
    received, trained : callables that return float32 [k, length]
        Parameters before and after; on the device, where MPI takes its memory.
    gradients : float32 [k, length]
        Of the last step of each client.
    finite : bool [k]
    """

    tally: Tally
    watch: DeviceWatch
    received: Callable[[], Tensor]
    trained: Callable[[], Tensor]
    gradients: Fetched
    finite: Fetched


class ClientGroup(Group):
    """k clients of one model shape whose steps are taken together.

    Their parameter vectors and moments become rows of common matrices [k, length].
    Which clients make up a group follows from their ids and the configuration,
    so the shapes of its products are the same on any number of ranks. Nothing that
    is started waits for the device; only the call that returns the results does.

    Parameters
    ----------
    clients : sequence of Client
    data : sequence of (GraphSet, GraphSet)
        Training graphs, and validation followed by test graphs, of each client.
    network : GroupedNetwork
    flops : ModelFlops
    task : Task
    """

    def __init__(
        self,
        clients: Sequence[Client],
        data: Sequence[tuple[GraphSet, GraphSet]],
        network: GroupedNetwork,
        flops: ModelFlops,
        task: Task,
    ) -> None:
        super().__init__(clients)
        self._network, self._flops, self._shared = network, flops, clients[0].shared
        self._task = task
        self._rows = GroupRows.starting(torch.stack([client.row for client in clients]))
        for place, client in enumerate(clients):
            client.row = self._rows.parameters[place]
            client.adam.mean, client.adam.square = self._rows.mean[place], self._rows.square[place]
        self._memory = _stacked([client.memory.held for client in clients])
        self._memory |= _stacked([client.incoming for client in clients])
        self._device = self._rows.parameters.device
        self.asynchronous = self._device.type != "cpu"
        rounded, everybody = self.asynchronous, range(len(clients))
        self._graphs, held_out = (
            GroupGraphs(sets, self._device, rounded=rounded, by_entry=network.by_entry)
            for sets in zip(*data, strict=True)
        )
        self._held_out = held_out.resident([None] * len(clients), everybody)
        both = zip(self._held_out.counts.tolist(), self._held_out.padded.tolist(), strict=True)
        self._held_out_flops = [flops_of(flops, *each, training=False) for each in both]
        self._everything: HostBatch | None = None
        self._steps: Steps | None = None
        self._forward: Captured | None = None

    def train(self, case: Case, algorithm: Hooks, round: int, chosen: set[int]) -> PendingTraining:
        """See `Group.train`; measured times are split between clients by their models' FLOPs."""
        if not any(client.id in chosen for client in self.clients):
            return dict
        options = case.optimizer
        watch, tally = DeviceWatch(self._device), Tally(len(self.clients), self._task)
        received = self._on_their_way(case, self._rows.parameters)
        if algorithm.change or algorithm.renews:
            self._references.copy_(self._rows.parameters)
        for client in self.clients:
            for vector in client.sent.values():
                vector.zero_()
        if options.state == "reset":
            self._rows.mean.zero_()
            self._rows.square.zero_()
            for client in self.clients:
                client.adam.steps = 0
                for adam in client.moments.values():
                    adam.reset()
        if self._steps is None:
            changed = partial(self._changed, algorithm.change) if algorithm.change else None
            capture = Captured if self._replays(algorithm) else None
            self._steps = Steps(self._network, self._graphs, self._rows, options, changed, capture)
        self._rows.gradient.zero_()
        orders = self._orders(case, round, chosen)
        masks = Masks(case.seed, round, self._network.streams)
        steps = step_numbers(options, self.clients, [list(order) for order in orders], masks, self._device)
        for order, numbers in zip(orders, steps, strict=True):
            batch = self._batch(order)
            tally.add(batch, *self._steps.take(batch, numbers))
        tally.fetch()
        found = _Found(
            tally=tally,
            watch=watch,
            received=received,
            trained=self._on_their_way(case, self._rows.parameters),
            gradients=Fetched(self._rows.gradient),
            finite=Fetched(finite(self._rows)),
        )
        watch.stop()
        return partial(self._trainings, case, algorithm, round, found)

    @cached_property
    def _references(self) -> Tensor:
        """Room for the parameters as received, which stays where it is."""
        return torch.empty_like(self._rows.parameters)

    def _replays(self, algorithm: Hooks) -> bool:
        """Return whether steps are replayed: on a GPU, unless a plug-in's `change` is called in each."""
        return self._device.type == "cuda" and not (algorithm.change and algorithm.is_plugin)

    def _on_their_way(self, case: Case, rows: Tensor) -> Callable[[], Tensor]:
        """Return what gives parameters as they are now: on the host, unless sums take the device's memory."""
        if case.reduction.on_device:
            kept = rows.clone()
            return lambda: kept
        fetched = Fetched(rows)
        return lambda: torch.from_numpy(fetched.get())

    def _orders(self, case: Case, round: int, chosen: set[int]) -> list[dict[int, Int | None]]:
        """Return whose graphs are taken in each of a round's steps, by place; None: all of a client's."""
        steps: list[dict[int, Int | None]] = []
        for epoch in range(case.local_epochs):
            orders = [
                list(client.batch_numbers(case, round, epoch)) if client.id in chosen else []
                for client in self.clients
            ]
            for step in zip_longest(*orders, fillvalue=_NOTHING):
                steps.append({place: each for place, each in enumerate(step) if each is not _NOTHING})
        return steps

    def _batch(self, order: dict[int, Int | None]) -> HostBatch:
        """Return a step's graphs; where they are all that all clients train on, they stay on the device."""
        if len(order) < len(self.clients) or any(numbers is not None for numbers in order.values()):
            return self._graphs.batch([*order.values()], [*order])
        if self._everything is None:
            self._everything = self._graphs.resident([*order.values()], [*order])
        return self._everything

    def _changed(self, change: Change, parameters: Tensor, who: Tensor, gradient: Tensor) -> None:
        references = self._references.index_select(0, who)
        memory = {name: rows.index_select(0, who) for name, rows in self._memory.items()}
        acting = zip(parameters, references, gradient, strict=True)
        for place, (row, reference, changed) in enumerate(acting):
            shared, received = self._shared.pack(changed), self._shared.pack(reference)
            known = {name: rows[place] for name, rows in memory.items()}
            change(shared, self._shared.pack(row), received, known)
            self._shared.unpack(shared, changed)

    def _trainings(self, case: Case, algorithm: Hooks, round: int, found: _Found) -> dict[int, Training]:
        tally, lasting, gradients = found.tally, found.finite.get(), torch.from_numpy(found.gradients.get())
        received, trained, outcomes = found.received(), found.trained(), tally.outcomes()
        flops, wall, cpu, results = tally.flops(self._flops), found.watch.wall, found.watch.cpu, {}
        total = sum(of_model for of_model, _ in flops)
        for place, (client, outcome) in enumerate(zip(self.clients, outcomes, strict=True)):
            if tally.steps[place]:
                done = Pass(outcome, *flops[place], steps=tally.steps[place])
                if algorithm.renews:
                    received_there = self._shared.pack(self._references[place])
                    trainee = Trainee(client, case, algorithm, round, received_there)
                    trainee.done.append(done)
                    algorithm.after_training(trainee)
                results[client.id] = Training.of(
                    [done],
                    gradient_norm=two_norm(self._shared.part(gradients[place])),
                    wall_s=wall * done.model_flops / total,
                    cpu_s=cpu * done.model_flops / total,
                    report=np.zeros(0, np.uint8),
                    received=self._shared.part(received[place]),
                    trained=self._shared.part(trained[place]),
                    finite=bool(lasting[place]),
                )
        return results

    @torch.no_grad()
    def evaluate(self, chosen: set[int]) -> PendingEvaluation:
        """Start the evaluation of its chosen clients."""
        if not any(client.id in chosen for client in self.clients):
            return dict
        if self._device.type != "cuda":
            found = self._score()
        else:
            self._forward = self._forward or Captured(self._score)
            found = self._forward.run()
        return partial(self._evaluations, chosen, *map(Fetched, found))

    def _score(self) -> tuple[Tensor, ...]:
        """Return the held-out graphs' losses [k, B] and what they are scored by: `GroupedNetwork.judge`."""
        assert self._held_out.resident is not None
        logits = self._network.logits(self._rows.parameters, self._held_out.resident, None)
        return self._network.judge(logits.double(), self._held_out.resident)

    def _evaluations(self, chosen: set[int], loss: Fetched, scored: Fetched) -> dict[int, Evaluation]:
        results = dict[int, Evaluation]()
        nats, found = (each.get().reshape(-1, *each.get().shape[2:]) for each in (loss, scored))
        outcomes = outcomes_of(self._task, len(self.clients), [self._held_out], nats, found)
        for place, client in enumerate(self.clients):
            if client.id in chosen:
                cut = client.num_validation
                val, test = (outcomes[place].part(part) for part in (slice(cut), slice(cut, None)))
                results[client.id] = Evaluation(val, test, *self._held_out_flops[place])
        return results

    def models(self) -> Models:
        """See `Group.models`."""
        rows = Fetched(self._rows.parameters)
        return lambda: {client.id: row for client, row in zip(self.clients, rows.get(), strict=True)}

    def receive(self, models: Mapping[int, Tensor]) -> None:
        """See `Group.receive`; a model for all, with nothing behind it, goes into all rows at once."""
        first = models.get(self.clients[0].id)
        alone = not self.clients[0].incoming
        if alone and first is not None and all(models.get(client.id) is first for client in self.clients):
            self._shared.unpack(first, self._rows.parameters)
        else:
            super().receive(models)


def _stacked(tables: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return vectors of k clients by name as matrices [k, *], of which they become the rows."""
    found = {name: torch.stack([table[name] for table in tables]) for name in tables[0]}
    for place, table in enumerate(tables):
        table.update((name, rows[place]) for name, rows in found.items())
    return found
