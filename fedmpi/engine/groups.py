"""Clients trained one by one, or several at once by batched products on one device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedmpi.algorithms.base import Algorithm
from fedmpi.clock import Stopwatch
from fedmpi.engine.case import Case, SgdOptions
from fedmpi.engine.clients import Client, Evaluation, Training, two_norm
from fedmpi.engine.optimizer import adam_step_of_group
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flops import GraphCounts, ModelFlops
from fedmpi.models.grouped_gin import GroupBatch, GroupedGin, group_batch, losses
from fedmpi.models.outcome import Outcome


class Group(Protocol):
    """Clients of one rank that train together."""

    clients: Sequence[Client]

    def train(self, case: Case, algorithm: Algorithm, round: int, chosen: set[int]) -> dict[int, Training]:
        """Train those of its clients that are chosen."""

    def evaluate(self, chosen: set[int]) -> dict[int, Evaluation]:
        """Evaluate those of its clients that are chosen."""


class Alone:
    """A client by itself."""

    def __init__(self, client: Client) -> None:
        self.clients: Sequence[Client] = [client]

    def train(self, case: Case, algorithm: Algorithm, round: int, chosen: set[int]) -> dict[int, Training]:
        """Train the client if it is chosen."""
        return {c.id: c.train_locally(case, algorithm, round) for c in self.clients if c.id in chosen}

    def evaluate(self, chosen: set[int]) -> dict[int, Evaluation]:
        """Evaluate the client if it is chosen."""
        return {c.id: c.evaluate() for c in self.clients if c.id in chosen}


class ClientGroup:
    """k clients of one model shape whose steps are taken together.

    Their parameter vectors and moments become rows of common matrices [k, length].
    Which clients make up a group follows from their ids and the configuration,
    so the shapes of its products are the same on any number of ranks.

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
        self._train = [train for train, _ in data]
        self._rows = torch.stack([client.row for client in clients])
        self._mean, self._square = torch.zeros_like(self._rows), torch.zeros_like(self._rows)
        for place, client in enumerate(clients):
            client.row = self._rows[place]
            client.adam.mean, client.adam.square = self._mean[place], self._square[place]
        device = self._rows.device
        self._held_out = group_batch([held_out for _, held_out in data], device)
        self._everything: GroupBatch | None = None
        self._replay: _Replay | None = None

    def train(self, case: Case, algorithm: Algorithm, round: int, chosen: set[int]) -> dict[int, Training]:
        """Train those of its clients that are chosen; times are shared out by the model's FLOPs."""
        if not any(client.id in chosen for client in self.clients):
            return {}
        assert not isinstance(case.optimizer, SgdOptions)  # the registry refused SGD
        watch, tally = Stopwatch(), [_Tally() for _ in self.clients]
        packed = [c.shared.pack(c.row) for c in self.clients] if algorithm.penalises else None
        if case.optimizer.state == "reset":
            for client in self.clients:
                client.adam.reset()
        gradient = torch.zeros_like(self._rows)
        for epoch in range(case.local_epochs):
            for parts in self._batches(case, round, epoch, chosen):
                active = [part is not None for part in parts]
                found = self._step(case, round, parts, active, tally)
                gradient = torch.where(self._mask(active), found, gradient)
                step = gradient if packed is None else self._penalised(algorithm, packed, gradient)
                adam_step_of_group(case.optimizer, self.clients, active, self._rows, step)
        return self._trainings(watch, tally, gradient)

    def _mask(self, active: Sequence[bool]) -> Tensor:
        return torch.tensor(active, device=self._rows.device)[:, None]

    def _batches(
        self, case: Case, round: int, epoch: int, chosen: set[int]
    ) -> Iterator[tuple[GraphSet | None, ...]]:
        """Yield each step's graphs by client; None where a client takes no step."""
        orders: list[list[Int | None]] = [
            list(client.batch_numbers(case, round, epoch)) if client.id in chosen else []
            for client in self.clients
        ]
        nothing = object()
        for step in zip_longest(*orders, fillvalue=nothing):
            yield tuple(
                None if numbers is nothing else train if numbers is None else train.take(numbers)  # type: ignore[arg-type]
                for numbers, train in zip(step, self._train, strict=True)
            )

    def _step(
        self,
        case: Case,
        round: int,
        parts: Sequence[GraphSet | None],
        active: Sequence[bool],
        tally: Sequence[_Tally],
    ) -> Tensor:
        """Return the gradients [k, length] of a step and take note of what it found."""
        whole = all(part is train for part, train in zip(parts, self._train, strict=True))
        if whole and self._everything is None:
            self._everything = group_batch(parts, self._rows.device)
        batch = self._everything if whole and self._everything else group_batch(parts, self._rows.device)
        layers = case.model.layers + 1
        keys = [
            DropoutStreams(case.seed, client.id, round, done.steps).keys(layers)
            for client, done in zip(self.clients, tally, strict=True)
        ]
        streams = torch.tensor(keys, device=self._rows.device)
        if whole and self._rows.device.type == "cuda":
            self._replay = self._replay or _Replay(self._gin, self._rows, batch, streams)
            gradient, nats, hits = self._replay.run(streams)
        else:
            gradient, nats, hits = _pass(self._gin, self._rows, batch, streams)
        for place, done in enumerate(tally):
            if active[place]:
                done.add(batch, place, nats[place], hits[place], self._flops)
        return gradient

    def _penalised(self, algorithm: Algorithm, references: Sequence[Tensor], gradient: Tensor) -> Tensor:
        gradient = gradient.clone()
        for client, reference, row in zip(self.clients, references, gradient, strict=True):
            shared = client.shared.pack(row)
            algorithm.penalty(client.shared.pack(client.row), reference, shared)
            client.shared.unpack(shared, row)
        return gradient

    def _trainings(self, watch: Stopwatch, tally: Sequence[_Tally], gradient: Tensor) -> dict[int, Training]:
        found = {}
        outcomes = [done.outcome() for done in tally]  # waits for the device
        wall, cpu = watch.wall, watch.cpu
        total = sum(done.model_flops for done in tally)
        for client, done, outcome, row in zip(self.clients, tally, outcomes, gradient, strict=True):
            if done.steps:
                share = done.model_flops / total
                found[client.id] = Training(
                    samples=len(outcome.losses),
                    steps=done.steps,
                    loss=outcome.mean_loss,
                    accuracy=outcome.accuracy,
                    gradient_norm=two_norm(client.shared.pack(row)),
                    model_flops=done.model_flops,
                    executed_flops=done.executed_flops,
                    wall_s=wall * share,
                    cpu_s=cpu * share,
                    report=np.zeros(0, np.uint8),
                )
        return found

    @torch.no_grad()
    def evaluate(self, chosen: set[int]) -> dict[int, Evaluation]:
        """Evaluate those of its clients that are chosen."""
        if not any(client.id in chosen for client in self.clients):
            return {}
        logits = self._gin.logits(self._rows, self._held_out, None)
        nats = losses(logits.double(), self._held_out).cpu().numpy()
        hits = (logits.argmax(dim=2) == self._held_out.labels).cpu().numpy().astype(np.uint8)
        found = {}
        for place, client in enumerate(self.clients):
            if client.id in chosen:
                counts, executed = _counts(self._held_out, place)
                whole = Outcome(nats[place, : counts.graphs], hits[place, : counts.graphs])
                cut = client.num_validation
                found[client.id] = Evaluation(
                    whole.part(slice(cut)),
                    whole.part(slice(cut, None)),
                    self._flops.forward(counts).total,
                    self._flops.executed(executed, training=False, kernels="grouped"),
                )
        return found


class _Tally:
    """What a client's steps found, on the device until the end of the round."""

    def __init__(self) -> None:
        self.steps = self.model_flops = self.executed_flops = 0
        self._losses: list[Tensor] = []
        self._hits: list[Tensor] = []

    def add(self, batch: GroupBatch, place: int, nats: Tensor, hits: Tensor, flops: ModelFlops) -> None:
        counts, executed = _counts(batch, place)
        self.steps += 1
        self.model_flops += flops.training(counts).total
        self.executed_flops += flops.executed(executed, training=True, kernels="grouped")
        self._losses.append(nats[: counts.graphs].clone())
        self._hits.append(hits[: counts.graphs].clone())

    def outcome(self) -> Outcome:
        if not self.steps:
            return Outcome(np.zeros(0), np.zeros(0, np.uint8))
        nats = torch.cat(self._losses).double().cpu().numpy()
        return Outcome(nats, torch.cat(self._hits).cpu().numpy().astype(np.uint8))


class _Replay:
    """A step captured as a CUDA graph; the dropout keys are copied in, the gradients lie in place."""

    def __init__(self, gin: GroupedGin, rows: Tensor, batch: GroupBatch, streams: Tensor) -> None:
        self._streams = streams.clone()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                _pass(gin, rows, batch, self._streams)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._found = _pass(gin, rows, batch, self._streams)

    def run(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self._streams.copy_(streams)
        self._graph.replay()
        return self._found


def _pass(gin: GroupedGin, rows: Tensor, batch: GroupBatch, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return gradients [k, length] of each client's mean loss, losses [k, B] and right predictions [k, B]."""
    leaf = rows.detach().requires_grad_()
    logits = gin.logits(leaf, batch, streams)
    nats = losses(logits, batch)
    (gradient,) = torch.autograd.grad((nats * batch.weights).sum(), leaf)
    return gradient, nats.detach(), logits.detach().argmax(dim=2) == batch.labels


def _counts(batch: GroupBatch, place: int) -> tuple[GraphCounts, GraphCounts]:
    """Return what a client's batch counts, and what it counts with padding."""
    graphs, nodes, edges = batch.sizes[place]
    return GraphCounts(graphs, nodes, edges), GraphCounts(batch.labels.shape[1], batch.x.shape[1], edges)
