"""Training steps and evaluation on a client's data by compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.client.passes import Embedded, Pass, Supervised, topology_counts
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.networks import FastBatch, FastNetwork
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flops import GraphCounts, ModelFlops

_Part = tuple[Any, npt.NDArray[np.int64], GraphCounts]
"""Graphs as compiled kernels evaluate them, their labels and what they count."""


class CompiledPasses(Supervised):
    """Passes of compiled kernels on one CPU thread."""

    def __init__(self, train: GraphSet, held_out: GraphSet, kernels: FastNetwork, flops: ModelFlops) -> None:
        self._batch: FastBatch = kernels.prepare(train)
        self._kernels, self._flops = kernels, flops
        super().__init__(train, held_out)

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs packed anew, or all of them."""
        return self._batch if graphs is None else self._batch.take(graphs)

    def step(self, batch: Any, streams: DropoutStreams, term: EmbeddingTerm | None = None) -> Pass:
        """Run forward and backward."""
        outcome = self._kernels.step(batch, streams, term)
        counts = GraphCounts(*batch.sizes)
        return Pass(outcome, self._flops.training(counts).total, self._kernels.step_flops(batch))

    def _part(self, graphs: GraphSet) -> _Part:
        return self._kernels.levels(graphs), graphs.labels, topology_counts(graphs.topology)

    def _judge(self, part: _Part) -> Pass:
        graphs, labels, _ = part
        return Pass(self._kernels.evaluate(graphs, labels), *self._forward_flops(part))

    def _embed(self, part: _Part) -> Embedded:
        return Embedded(self._kernels.embed(part[0]), *self._forward_flops(part))

    def _forward_flops(self, part: _Part) -> tuple[int, int]:
        graphs, _, counts = part
        return self._flops.forward(counts).total, self._kernels.evaluation_flops(graphs)
