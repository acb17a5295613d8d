"""Training steps and evaluation on a client's data by torch's autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.passes import (
    Embedded,
    Embedding,
    Pass,
    Supervised,
    evaluation_parts,
    topology_counts,
)
from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.flops import GraphCounts, ModelFlops
from fedmpi.models.outcome import joined
from fedmpi.tasks.base import Task

_MOST_SINGLE = 8192
"""Training graphs of a client up to which batches of one are kept; about 20 kB each."""


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

    def step(
        self,
        batch: Any,
        streams: DropoutStreams,
        term: EmbeddingTerm | None = None,
        loss_of: Callable[[Tensor], Tensor] | None = None,
    ) -> Pass:
        """Run forward and backward; `loss_of` the outputs takes the place of the task's loss."""
        batch = self._task.step_batch(batch, streams)
        executed = self._executed(batch, training=True)
        if term is None:
            logits = self._task.outputs(self._model.module, batch, streams, self._kernels)
            loss = self._task.loss(logits, batch.labels) if loss_of is None else loss_of(logits.clone())
        else:
            with _embeddings_of(self._model.module) as embeddings:
                logits = self._task.outputs(self._model.module, batch, streams, self._kernels)
            added = term(embeddings[0])
            loss = self._task.loss(logits, batch.labels)
            loss = loss if added is None else loss + added
        self._model.gradient.zero_()
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
        return [Batch.of(part, self._model.parameters.device) for part in evaluation_parts(graphs)]

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


def counts_of(batch: Batch) -> GraphCounts:
    """Return what a pass over a batch works on, with a score of every class."""
    counts = topology_counts(batch.topology)
    return replace(counts, examples=batch.num_places, entries=batch.num_entries)
