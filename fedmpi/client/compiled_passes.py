"""Training steps and evaluation on a client's data by compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedmpi.client.passes import (
    Embedded,
    Embedding,
    Pass,
    Supervised,
    evaluation_parts,
    topology_counts,
)
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.networks import FastBatch, FastNetwork
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flops import GraphCounts, ModelFlops
from fedmpi.models.outcome import joined

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
        parts = evaluation_parts(graphs)
        return [(self._kernels.levels(part), part.labels, topology_counts(part.topology)) for part in parts]

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
