"""Clients trained one by one, or several at once by batched products on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.program import Change
from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.case.schema import Case
from fedmpi.client.client import Client, Training
from fedmpi.client.group_results import Rates, Tally, finite, norms, outcomes_of
from fedmpi.client.group_rows import GroupRows
from fedmpi.client.group_steps import Masks, Steps
from fedmpi.client.passes import Pass
from fedmpi.client.trainee import Trainee
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.transfer import DeviceWatch, Fetched
from fedmpi.kernels.captured import Captured, lane
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
    length : int
        Training graphs of the client with most of them, where the longest group is to start first; else 0.
    """

    asynchronous = False
    length = 0

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
        self._network, self._shared = network, clients[0].shared
        self._task = task
        self._rows = GroupRows.starting(torch.stack([client.row for client in clients]))
        for place, client in enumerate(clients):
            client.row = self._rows.parameters[place]
            client.adam.mean, client.adam.square = self._rows.mean[place], self._rows.square[place]
        self._memory = _stacked([client.memory.held for client in clients])
        self._memory |= _stacked([client.incoming for client in clients])
        self._device = self._rows.parameters.device
        self.asynchronous = self._device.type != "cpu"
        self._lane = lane(self._device) if self._device.type == "cuda" else nullcontext()
        self.length = max(client.num_train for client in clients) if self.asynchronous else 0
        self._everybody = dict.fromkeys(range(len(clients)))
        self._graphs, held_out = (
            GroupGraphs(sets, self._device, rounded=self.asynchronous, by_entry=network.by_entry)
            for sets in zip(*data, strict=True)
        )
        self._held_out = held_out.resident(self._everybody)
        self._rates = Rates(flops, training=True, of_nodes=network.of_nodes)
        of_held_out = self._held_out.counts, self._held_out.padded
        rates = Rates(flops, training=False, of_nodes=network.of_nodes)
        self._held_out_flops = rates.of(*of_held_out)
        self._references = torch.empty_like(self._rows.parameters)
        self._everything: HostBatch | None = None
        self._steps: Steps | None = None
        self._forward: Captured | None = None
        self._ending: Captured | None = None

    def train(self, case: Case, algorithm: Hooks, round: int, chosen: set[int]) -> PendingTraining:
        """See `Group.train`; measured times are split between clients by their models' FLOPs."""
        if not any(client.id in chosen for client in self.clients):
            return dict
        with self._lane:
            return self._started(case, algorithm, round, chosen)

    def _started(self, case: Case, algorithm: Hooks, round: int, chosen: set[int]) -> PendingTraining:
        watch = DeviceWatch(self._device)
        self._begin_round(case.optimizer)
        steps = self._steps = self._steps or self._made_steps(case, algorithm)
        batches = self._batches(case, round, chosen)
        masks = Masks(case.seed, round, self._network.streams)
        taken = steps.take(batches, masks)
        if steps.capture is None:
            ending = self._end()
        else:
            self._ending = self._ending or steps.capture(self._end)
            ending = self._ending.run()
        changes, numbers = ending[0], ending[1:]
        watch.stop()
        fetched = Fetched(*taken, *numbers, *([] if case.reduction.on_device else [changes]))
        kept = changes if case.reduction.on_device else None
        place = case, algorithm, round, Tally(len(self.clients), self._task, batches)
        return partial(self._trainings, *place, watch, fetched, kept)

    def _begin_round(self, options: OptimizerOptions) -> None:
        """Note the parameters as received, and forget what belongs to the round before."""
        self._references.copy_(self._rows.parameters)
        self._rows.gradient.zero_()
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

    def _made_steps(self, case: Case, algorithm: Hooks) -> Steps:
        changed = partial(self._changed, algorithm.change) if algorithm.change else None
        capture = Captured if self._replays(algorithm) else None
        own = self._network, self._graphs, self._rows, self.clients
        return Steps(*own, case.optimizer, changed, capture)

    @torch.no_grad()
    def _end(self) -> tuple[Tensor, ...]:
        """Return what a round's steps left of each client.

        How the shared parameters changed, float32 [k, shared]; the 2-norms of that and of the last gradient,
        float64 [k], the largest magnitude of the change, and whether all numbers are finite.
        """
        part = self._shared.part
        changes = part(self._rows.parameters) - part(self._references)
        of_changes, of_gradients = norms(changes[:, : self._shared.trained]), norms(part(self._rows.gradient))
        return changes, of_changes, of_gradients, changes.abs().amax(dim=1), finite(self._rows)

    def _replays(self, algorithm: Hooks) -> bool:
        """Return whether steps are replayed: on a GPU, unless a plug-in's `change` is called in each."""
        return self._device.type == "cuda" and not (algorithm.change and algorithm.is_plugin)

    def _batches(self, case: Case, round: int, chosen: set[int]) -> list[HostBatch]:
        """Return a round's batches; one of all that all clients train on stays on the device."""
        steps: list[dict[int, Int | None]] = []
        for epoch in range(case.local_epochs):
            orders = [
                list(client.batch_numbers(case, round, epoch)) if client.id in chosen else []
                for client in self.clients
            ]
            for step in zip_longest(*orders, fillvalue=_NOTHING):
                steps.append({place: each for place, each in enumerate(step) if each is not _NOTHING})
        shuffled = [step for step in steps if not self._is_whole(step)]
        if len(shuffled) < len(steps) and self._everything is None:
            self._everything = self._graphs.resident(self._everybody)
        batches = iter(self._graphs.batches(shuffled) if shuffled else ())
        found = [self._everything if self._is_whole(step) else next(batches) for step in steps]
        return [each for each in found if each is not None]

    def _is_whole(self, step: Mapping[int, Int | None]) -> bool:
        """Return whether a step takes all that all clients train on."""
        return len(step) == len(self.clients) and all(numbers is None for numbers in step.values())

    def _changed(self, change: Change, parameters: Tensor, who: Tensor, gradient: Tensor) -> None:
        references = self._references.index_select(0, who)
        memory = {name: rows.index_select(0, who) for name, rows in self._memory.items()}
        acting = zip(parameters, references, gradient, strict=True)
        for place, (row, reference, changed) in enumerate(acting):
            shared, received = self._shared.pack(changed), self._shared.pack(reference)
            known = {name: rows[place] for name, rows in memory.items()}
            change(shared, self._shared.pack(row), received, known)
            self._shared.unpack(shared, changed)

    def _trainings(
        self,
        case: Case,
        algorithm: Hooks,
        round: int,
        tally: Tally,
        watch: DeviceWatch,
        fetched: Fetched,
        kept: Tensor | None,
    ) -> dict[int, Training]:
        nats, found, of_changes, of_gradients, largest, lasting, *moved = fetched.get()
        changes = torch.from_numpy(moved[0]) if kept is None else kept
        outcomes, flops = tally.outcomes(nats, found), tally.flops(self._rates)
        wall, cpu, results = watch.wall, watch.cpu, {}
        total = sum(of_model for of_model, _ in flops)
        for place, (client, outcome) in enumerate(zip(self.clients, outcomes, strict=True)):
            if tally.steps[place]:
                done = Pass(outcome, *flops[place], steps=tally.steps[place])
                if algorithm.renews:
                    received_there = self._shared.pack(self._references[place])
                    trainee = Trainee(client, case, algorithm, round, received_there)
                    trainee.done.append(done)
                    algorithm.after_training(trainee)
                sends = client.with_sent(changes[place])
                results[client.id] = Training.of(
                    [done],
                    sends=sends,
                    norm=float(of_changes[place]),
                    largest=float(sends.abs().amax() if client.sent else largest[place]),
                    gradient_norm=float(of_gradients[place]),
                    wall_s=wall * done.model_flops / total,
                    cpu_s=cpu * done.model_flops / total,
                    report=np.zeros(0, np.uint8),
                    finite=bool(lasting[place]),
                )
        return results

    @torch.no_grad()
    def evaluate(self, chosen: set[int]) -> PendingEvaluation:
        """Start the evaluation of its chosen clients."""
        if not any(client.id in chosen for client in self.clients):
            return dict
        with self._lane:
            if self._device.type != "cuda":
                found = self._score()
            else:
                self._forward = self._forward or Captured(self._score)
                found = self._forward.run()
            return partial(self._evaluations, chosen, Fetched(*found))

    def _score(self) -> tuple[Tensor, ...]:
        """Return the held-out graphs' losses [k B] and what they are scored by: `GroupedNetwork.judge`."""
        assert self._held_out.resident is not None
        logits = self._network.logits(self._rows.parameters, self._held_out.resident, None)
        found = self._network.judge(logits.double(), self._held_out.resident)
        return tuple(each.flatten(0, 1) for each in found)

    def _evaluations(self, chosen: set[int], fetched: Fetched) -> dict[int, Evaluation]:
        results = dict[int, Evaluation]()
        outcomes = outcomes_of(self._task, len(self.clients), [self._held_out], *fetched.get())
        for place, client in enumerate(self.clients):
            if client.id in chosen:
                cut = client.num_validation
                val, test = (outcomes[place].part(part) for part in (slice(cut), slice(cut, None)))
                results[client.id] = Evaluation(val, test, *self._held_out_flops[place])
        return results

    def models(self) -> Models:
        """See `Group.models`."""
        rows = Fetched(self._rows.parameters)
        return lambda: {client.id: row for client, row in zip(self.clients, rows.get()[0], strict=True)}

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
