"""Clients trained one by one, or several at once by batched products on one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedmpi.case.schema import Case, SgdOptions
from fedmpi.engine.capability_hooks import LocalPenalty
from fedmpi.engine.client_state import two_norm
from fedmpi.engine.clients import Client, Evaluation, Training
from fedmpi.engine.group_steps import GroupRows, Masks, Steps, step_numbers
from fedmpi.engine.hooks import Hooks
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.transfer import DeviceWatch
from fedmpi.kernels.grouped_gin import GroupBatch, GroupedGin, group_batch, losses
from fedmpi.models.flops import GraphCounts, ModelFlops
from fedmpi.models.outcome import Outcome

PendingTraining = Callable[[], dict[int, Training]]
PendingEvaluation = Callable[[], dict[int, Evaluation]]

_NOTHING: Int = np.zeros(0, np.int64)
"""Stands for the graphs of a client that takes no step."""

Order = tuple[Int | None, ...]
"""Numbers of a step's graphs by client; None for one whose graphs fit one batch."""


class Group(Protocol):
    """Clients of one rank that train together.

    Attributes
    ----------
    clients : sequence of Client
    asynchronous : bool
        Whether the host may start other groups before it awaits the results of this one.
    """

    clients: Sequence[Client]
    asynchronous: bool

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

    def evaluate(self, chosen: set[int]) -> PendingEvaluation:
        """Start the evaluation of those of its clients that are chosen."""


class Alone:
    """A client by itself."""

    asynchronous = False

    def __init__(self, client: Client) -> None:
        self.clients: Sequence[Client] = [client]

    def train(self, case: Case, algorithm: Hooks, round: int, chosen: set[int]) -> PendingTraining:
        """See `Group.train`."""
        results = {c.id: c.train_locally(case, algorithm, round) for c in self.clients if c.id in chosen}
        return lambda: results

    def evaluate(self, chosen: set[int]) -> PendingEvaluation:
        """Evaluate the client if it is chosen."""
        results = {c.id: c.evaluate() for c in self.clients if c.id in chosen}
        return lambda: results


class ClientGroup:
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
    gin : GroupedGin
    flops : ModelFlops
    """

    def __init__(
        self,
        clients: Sequence[Client],
        data: Sequence[tuple[GraphSet, GraphSet]],
        gin: GroupedGin,
        flops: ModelFlops,
    ) -> None:
        self.clients = clients
        self._gin, self._flops = gin, flops
        self._train = tuple(train for train, _ in data)
        self._rows = GroupRows.starting(torch.stack([client.row for client in clients]))
        for place, client in enumerate(clients):
            client.row = self._rows.parameters[place]
            client.adam.mean, client.adam.square = self._rows.mean[place], self._rows.square[place]
        self._references = torch.stack([client.shared.pack(client.row) for client in clients])
        self._device = self._rows.parameters.device
        self.asynchronous = self._device.type != "cpu"
        self._held_out = group_batch([held_out for _, held_out in data], self._device)
        self._everything: GroupBatch | None = None
        self._steps: Steps | None = None

    def train(self, case: Case, algorithm: Hooks, round: int, chosen: set[int]) -> PendingTraining:
        """See `Group.train`; measured times are split between clients by their models' FLOPs."""
        if not any(client.id in chosen for client in self.clients):
            return dict
        options = case.optimizer
        assert not isinstance(options, SgdOptions)  # the registry refused SGD
        watch, tally = DeviceWatch(self._device), _Tally(len(self.clients), self._flops)
        if algorithm.penalty:
            for reference, client in zip(self._references, self.clients, strict=True):
                reference.copy_(client.shared.pack(client.row))
        if options.state == "reset":
            for client in self.clients:
                client.adam.reset()
        if self._steps is None:
            penalised = partial(self._penalised, algorithm.penalty) if algorithm.penalty else None
            self._steps = Steps(self._gin, self._rows, options, penalised)
        self._rows.gradient.zero_()
        orders = self._orders(case, round, chosen)
        active = [[numbers is not _NOTHING for numbers in step] for step in orders]
        masks = Masks(case.seed, round, case.model.layers + 1)
        numbers_by_step = step_numbers(options, self.clients, active, masks, self._device)
        for order, acting, numbers in zip(orders, active, numbers_by_step, strict=True):
            batch, again = self._batch(order)
            tally.add(batch, acting, *self._steps.take(batch, numbers, again=again))
        watch.stop()
        return partial(self._trainings, watch, tally)

    def _orders(self, case: Case, round: int, chosen: set[int]) -> list[Order]:
        """Return what each client takes in each of a round's steps."""
        steps: list[Order] = []
        for epoch in range(case.local_epochs):
            orders = [
                list(client.batch_numbers(case, round, epoch)) if client.id in chosen else []
                for client in self.clients
            ]
            steps += zip_longest(*orders, fillvalue=_NOTHING)
        return steps

    def _batch(self, order: Order) -> tuple[GroupBatch, bool]:
        """Return a step's graphs on the device, and whether they are all that all clients train on."""
        if any(numbers is not None for numbers in order):
            parts = [
                None if numbers is _NOTHING else train if numbers is None else train.take(numbers)
                for numbers, train in zip(order, self._train, strict=True)
            ]
            return group_batch(parts, self._device), False
        if self._everything is None:
            self._everything = group_batch(self._train, self._device)
        return self._everything, True

    def _penalised(self, hooks: LocalPenalty, gradient: Tensor) -> Tensor:
        gradient = gradient.clone()
        for client, reference, row in zip(self.clients, self._references, gradient, strict=True):
            shared = client.shared.pack(row)
            hooks.penalty(client.shared.pack(client.row), reference, shared)
            client.shared.unpack(shared, row)
        return gradient

    def _trainings(self, watch: DeviceWatch, tally: _Tally) -> dict[int, Training]:
        outcomes, gradients = tally.outcomes(), self._rows.gradient.cpu()
        total, results = sum(tally.model_flops), {}
        for place, (client, outcome) in enumerate(zip(self.clients, outcomes, strict=True)):
            if tally.steps[place]:
                share = tally.model_flops[place] / total
                results[client.id] = Training(
                    samples=len(outcome.losses),
                    steps=tally.steps[place],
                    loss=outcome.mean_loss,
                    accuracy=outcome.accuracy,
                    gradient_norm=two_norm(client.shared.pack(gradients[place])),
                    model_flops=tally.model_flops[place],
                    executed_flops=tally.executed_flops[place],
                    wall_s=watch.wall * share,
                    cpu_s=watch.cpu * share,
                    report=np.zeros(0, np.uint8),
                )
        return results

    @torch.no_grad()
    def evaluate(self, chosen: set[int]) -> PendingEvaluation:
        """Start the evaluation of its chosen clients."""
        if not any(client.id in chosen for client in self.clients):
            return dict
        logits = self._gin.logits(self._rows.parameters, self._held_out, None)
        nats = losses(logits.double(), self._held_out)
        return partial(self._evaluations, chosen, nats, logits.argmax(dim=2) == self._held_out.labels)

    def _evaluations(self, chosen: set[int], loss: Tensor, right: Tensor) -> dict[int, Evaluation]:
        nats, hits = loss.cpu().numpy(), right.cpu().numpy().astype(np.uint8)
        results = {}
        for place, client in enumerate(self.clients):
            if client.id in chosen:
                counts, executed = _counts(self._held_out, place)
                whole = Outcome(nats[place, : counts.graphs], hits[place, : counts.graphs])
                cut = client.num_validation
                results[client.id] = Evaluation(
                    whole.part(slice(cut)),
                    whole.part(slice(cut, None)),
                    self._flops.forward(counts).total,
                    self._flops.executed(executed, training=False, kernels="grouped"),
                )
        return results


class _Tally:
    """Results of the steps of k clients; they stay on the device until `outcomes`."""

    def __init__(self, clients: int, flops: ModelFlops) -> None:
        self.steps, self.model_flops, self.executed_flops = ([0] * clients for _ in range(3))
        self._flops = flops
        self._graphs: list[list[int]] = []
        self._losses: list[Tensor] = []
        self._hits: list[Tensor] = []

    def add(self, batch: GroupBatch, active: Sequence[bool], nats: Tensor, hits: Tensor) -> None:
        """Take note of a step: losses and hits [k, B]."""
        for place, acts in enumerate(active):
            if acts:
                counts, executed = _counts(batch, place)
                self.steps[place] += 1
                self.model_flops[place] += self._flops.training(counts).total
                self.executed_flops[place] += self._flops.executed(executed, training=True, kernels="grouped")
        self._graphs.append([graphs for graphs, _, _ in batch.sizes])
        self._losses.append(nats)
        self._hits.append(hits)

    def outcomes(self) -> list[Outcome]:
        """Return each client's outcome of all its steps; waits for the device."""
        nats = torch.cat(self._losses, dim=1).double().cpu().numpy()
        hits = torch.cat(self._hits, dim=1).cpu().numpy().astype(np.uint8)
        widths = [each.shape[1] for each in self._losses]
        starts = np.cumsum([0, *widths[:-1]])
        outcomes = []
        for place in range(len(nats)):
            counts = [graphs[place] for graphs in self._graphs]
            columns = np.concatenate([begin + np.arange(n) for begin, n in zip(starts, counts, strict=True)])
            outcomes.append(Outcome(nats[place, columns], hits[place, columns]))
        return outcomes


def _counts(batch: GroupBatch, place: int) -> tuple[GraphCounts, GraphCounts]:
    """Return what a client's batch counts, and what it counts with padding."""
    graphs, nodes, edges = batch.sizes[place]
    return GraphCounts(graphs, nodes, edges), GraphCounts(batch.labels.shape[1], batch.x.shape[1], edges)
