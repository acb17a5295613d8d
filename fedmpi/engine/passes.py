"""Training steps and evaluation on a client's data, by compiled kernels or by torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Int, Topology
from fedmpi.kernels.networks import FastBatch, FastNetwork
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.flops import GraphCounts, ModelFlops
from fedmpi.models.outcome import Outcome, joined
from fedmpi.tasks.base import Task

_MOST_SINGLE = 8192
"""Training graphs of a client up to which batches of one are kept; about 20 kB each."""

LARGEST_EVALUATION = 1024
"""Graphs per forward pass of an evaluation; bounds memory."""


@dataclass(frozen=True)
class Pass:
    """Outcome of a pass, and its FLOPs as the model counts them and as the kernels did them.

    `vectors` are those that an unsupervised objective gives to graphs, float32 [graphs, d]. A pass over
    a whole epoch makes up several `steps`.
    """

    outcome: Outcome
    model_flops: int
    executed_flops: int
    vectors: npt.NDArray[np.float32] | None = None
    steps: int = 1


@dataclass(frozen=True)
class Embedded:
    """What the model pools of some training graphs, float32 [B, h], and the FLOPs of a forward pass."""

    rows: Any
    model_flops: int
    executed_flops: int


@dataclass(frozen=True)
class Embedding:
    """Mean of what the model pools of the training graphs, float64 [h], and the FLOPs of a forward pass."""

    mean: npt.NDArray[np.float64]
    model_flops: int
    executed_flops: int


class Passes(Protocol):
    """A client's training graphs and held-out graphs, ready for one kind of kernels.

    The model's parameter vector is read; `step` leaves the gradient of the
    objective in the model's gradient vector.
    """

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs as `step` takes them; None stands for all, prepared once."""

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""

    def evaluate(self) -> Pass:
        """Classify all held-out graphs without dropout; or give vectors to all graphs of the client."""

    def begin_round(self, last: Tensor | None) -> None:
        """Prepare for a round's training; called once, with the received parameters in the model.

        Parameters
        ----------
        last : float32 [length] or None
            The client's parameters at the end of its last round, where the objective keeps them.
        """

    def end_epoch(self) -> None:
        """Complete a local epoch, with its parameters in the model."""

    def end_round(self) -> None:
        """Release what is kept for the round; called once after its training."""


class Supervised:
    """Passes of an objective that needs no copies of the model."""

    def begin_round(self, last: Tensor | None) -> None:
        """No-op."""

    def end_epoch(self) -> None:
        """No-op."""

    def end_round(self) -> None:
        """No-op."""


_Levels = list[tuple[Any, npt.NDArray[np.int64], GraphCounts]]
"""Graphs as compiled kernels evaluate them, their labels and what they count; for each part of a split."""


class CompiledPasses(Supervised):
    """Passes of compiled kernels on one CPU thread."""

    def __init__(self, train: GraphSet, held_out: GraphSet, kernels: FastNetwork, flops: ModelFlops) -> None:
        self._train: FastBatch = kernels.prepare(train)
        self._kernels, self._flops = kernels, flops
        self._graphs = train
        self._training: _Levels = []
        self._held_out = self._levels(held_out)

    def with_held_out(self, graphs: GraphSet) -> Self:
        """Return passes that share the training graphs and have other held-out ones."""
        other = copy(self)
        other._held_out = self._levels(graphs)
        return other

    def _levels(self, graphs: GraphSet) -> _Levels:
        parts = _parts(graphs)
        return [(self._kernels.levels(part), part.labels, _counts(part.topology)) for part in parts]

    @property
    def _training_levels(self) -> _Levels:
        self._training = self._training or self._levels(self._graphs)
        return self._training

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs packed anew, or all of them."""
        return self._train if graphs is None else self._train.take(graphs)

    def step(self, batch: Any, streams: DropoutStreams, term: EmbeddingTerm | None = None) -> Pass:
        """Run forward and backward."""
        outcome = self._kernels.step(batch, streams, term)
        counts = GraphCounts(*batch.sizes)
        return Pass(outcome, self._flops.training(counts).total, self._kernels.step_flops(batch))

    def evaluate(self) -> Pass:
        """Classify all held-out graphs without dropout."""
        return self._evaluate(self._held_out)

    def evaluate_training(self) -> Pass:
        """Classify all training graphs without dropout."""
        return self._evaluate(self._training_levels)

    def _evaluate(self, parts: _Levels) -> Pass:
        found, counted, executed = [], 0, 0
        for graphs, labels, counts in parts:
            found.append(self._kernels.evaluate(graphs, labels))
            counted += self._flops.forward(counts).total
            executed += self._kernels.evaluation_flops(graphs)
        return Pass(joined(found), counted, executed)

    @property
    def training_labels(self) -> npt.NDArray[Any]:
        """Labels of the training graphs."""
        return self._graphs.labels

    def embedded(self) -> Iterator[Embedded]:
        """Embed all training graphs without dropout, up to the pooling, part by part; each is overwritten."""
        return self._embedded(self._training_levels)

    def embedded_held_out(self) -> Iterator[Embedded]:
        """Embed all held-out graphs in the same way."""
        return self._embedded(self._held_out)

    def _embedded(self, parts: _Levels) -> Iterator[Embedded]:
        for graphs, _, counts in parts:
            executed = self._kernels.evaluation_flops(graphs)
            yield Embedded(self._kernels.embed(graphs), self._flops.forward(counts).total, executed)

    @property
    def held_out_labels(self) -> npt.NDArray[Any]:
        """Labels of the held-out graphs."""
        return np.concatenate([labels for _, labels, _ in self._held_out])

    def embed(self) -> Embedding:
        """Return the mean embedding of all training graphs."""
        total, counted, executed = np.zeros(1), 0, 0
        for part in self.embedded():
            total = total + part.rows.sum(axis=0, dtype=np.float64)
            counted += part.model_flops
            executed += part.executed_flops
        return Embedding(total / self._graphs.num_graphs, counted, executed)


class TorchPasses(Supervised):
    """Passes by torch's autograd: CSR products on any device, or torch-geometric as reference."""

    def __init__(
        self,
        train: GraphSet,
        held_out: GraphSet,
        model: FlatModel,
        kernels: str,
        flops: ModelFlops,
        task: Task,
    ) -> None:
        self._train, self._held_out, self._task = train, held_out, task
        self._model, self._kernels, self._flops = model, kernels, flops
        self._everything: Batch | None = None
        self._single: dict[int, Batch] = {}
        self._held_out_batches: list[Batch] = []
        self._training_batches: list[Batch] = []

    def with_held_out(self, graphs: GraphSet) -> Self:
        """Return passes that share the training graphs and have other held-out ones."""
        other = copy(self)
        other._held_out, other._held_out_batches = graphs, []
        return other

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs on the device; single graphs are prepared once, up to `_MOST_SINGLE`."""
        device = self._model.parameters.device
        if graphs is not None and len(graphs) == 1 and self._train.num_graphs <= _MOST_SINGLE:
            graph = int(graphs[0])
            if graph not in self._single:
                self._single[graph] = Batch.of(self._train.take(graphs), device)
            return self._single[graph]
        if graphs is not None:
            return Batch.of(self._train.take(graphs), device)
        if self._everything is None:
            self._everything = Batch.of(self._train, device)
        return self._everything

    def step(self, batch: Any, streams: DropoutStreams, term: EmbeddingTerm | None = None) -> Pass:
        """Run forward and backward."""
        self._model.gradient.zero_()
        batch = self._task.step_batch(batch, streams)
        executed = self._executed(batch, training=True)
        if term is None:
            logits = self._task.outputs(self._model.module, batch, streams, self._kernels)
            loss = self._task.loss(logits, batch.labels)
        else:
            with _embeddings_of(self._model.module) as embeddings:
                logits = self._task.outputs(self._model.module, batch, streams, self._kernels)
            added = term(embeddings[0])
            loss = self._task.loss(logits, batch.labels)
            loss = loss if added is None else loss + added
        loss.backward()  # type: ignore[no-untyped-call]
        counts = self._counts_of(batch)
        outcome = self._task.outcome(logits.detach(), batch.labels)
        return Pass(outcome, self._flops.training(counts).total, executed)

    def evaluate(self) -> Pass:
        """Classify all held-out graphs without dropout."""
        self._held_out_batches = self._held_out_batches or self._batches(self._held_out)
        return self._evaluate(self._held_out_batches)

    def evaluate_training(self) -> Pass:
        """Classify all training graphs without dropout."""
        self._training_batches = self._training_batches or self._batches(self._train)
        return self._evaluate(self._training_batches)

    def _batches(self, graphs: GraphSet) -> list[Batch]:
        return [Batch.of(part, self._model.parameters.device) for part in _parts(graphs)]

    @torch.no_grad()
    def _evaluate(self, batches: list[Batch]) -> Pass:
        found, counted, executed = [], 0, 0
        for batch in batches:
            executed += self._executed(batch, training=False)
            judged, more = self._task.judge(self._model.module, batch, self._kernels)
            found.append(judged)
            counts = self._counts_of(batch)
            counted += self._flops.forward(counts).total + more
            executed += more
        return Pass(joined(found), counted, executed)

    def _counts_of(self, batch: Batch) -> GraphCounts:
        return replace(counts_of(batch), outputs=self._task.scores_each)

    def _executed(self, batch: Batch, *, training: bool) -> int:
        """Return the FLOPs that the kernels are about to do; a network that sums by twins has fewer edges."""
        counts = self._counts_of(batch)
        if self._kernels == "csr" and getattr(self._model.module, "by_twins", False):
            counts = replace(counts, edges=batch.num_entries_by_twins)
        kept = batch.keeps_propagated
        return self._flops.executed(counts, training=training, kernels=self._kernels, propagated=kept)

    @property
    def training_labels(self) -> npt.NDArray[Any]:
        """Labels of the training graphs."""
        return self._train.labels

    def embedded(self) -> Iterator[Embedded]:
        """Embed all training graphs without dropout, up to the pooling, part by part."""
        self._training_batches = self._training_batches or self._batches(self._train)
        return self._embedded(self._training_batches)

    def embedded_held_out(self) -> Iterator[Embedded]:
        """Embed all held-out graphs in the same way."""
        self._held_out_batches = self._held_out_batches or self._batches(self._held_out)
        return self._embedded(self._held_out_batches)

    @property
    def held_out_labels(self) -> npt.NDArray[Any]:
        """Labels of the held-out graphs."""
        return self._held_out.labels

    def _embedded(self, batches: list[Batch]) -> Iterator[Embedded]:
        for batch in batches:
            yield self.forward(batch, head=False)

    @property
    def training_places(self) -> Int | None:
        """Nodes or pairs that the training examples are; None: they are graphs."""
        return self._train.places

    @torch.no_grad()
    def forward(self, batch: Batch, *, head: bool) -> Embedded:
        """Run the network without dropout, up to its head or with it; a whole pass is counted."""
        executed, module = self._executed(batch, training=False), self._model.module
        if head:
            rows = self._task.outputs(module, batch, None, self._kernels)
        else:
            rows = module.embed(batch, None, self._kernels)  # type: ignore[operator]
        return Embedded(rows, self._flops.forward(self._counts_of(batch)).total, executed)

    def embed(self) -> Embedding:
        """Return the mean embedding of all training graphs."""
        total, counted, executed = np.zeros(1), 0, 0
        for part in self.embedded():
            total = total + part.rows.double().sum(dim=0).cpu().numpy()
            counted += part.model_flops
            executed += part.executed_flops
        return Embedding(total / len(self._train.labels), counted, executed)


@contextmanager
def _embeddings_of(module: Any) -> Iterator[list[Tensor]]:
    """Collect what a network's `embed` returns while its `forward` runs."""
    found, embed = list[Tensor](), module.embed

    def noted(*arguments: Any, **named: Any) -> Tensor:
        found.append(embed(*arguments, **named))
        return found[-1]

    module.embed = noted
    try:
        yield found
    finally:
        del module.embed
    if len(found) != 1:
        kind = type(module).__name__
        raise BadInput(f"{kind}.forward must call embed once, for a loss that is made of embeddings")


def _parts(graphs: GraphSet) -> list[GraphSet]:
    everything = np.arange(graphs.num_graphs)
    cuts = range(0, max(len(everything), 1), LARGEST_EVALUATION)
    return [graphs.take(everything[cut : cut + LARGEST_EVALUATION]) for cut in cuts]


def _counts(topology: Topology) -> GraphCounts:
    return GraphCounts(topology.num_graphs, topology.num_nodes, topology.num_edges)


def counts_of(batch: Batch) -> GraphCounts:
    """Return what a pass over a batch works on, with a score of every class."""
    counts = _counts(batch.topology)
    return replace(counts, examples=batch.num_places, entries=batch.num_entries)
