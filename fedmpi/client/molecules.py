"""Passes over a client's molecules by compiled kernels: a local epoch is one call."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.client.optimizer import AdamState, steps_ahead
from fedmpi.client.passes import LARGEST_EVALUATION, Embedding, Pass, Supervised
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.molecules.arrays import CLASSES, LABELS, NUMBERS, GraphResults, Molecules
from fedmpi.kernels.molecules.fast import FastMolecules, Moments
from fedmpi.models.counts import GraphCounts, ModelFlops
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import Task
from fedmpi.tasks.regression import Regression

TARGETS = {"classification": CLASSES, "multi-task": LABELS, "regression": NUMBERS}
"""Kernels' kind of targets by kind of labels."""


@dataclass(frozen=True)
class _Part:
    """Some of a client's graphs as the kernels take them, and what is known of each.

    Attributes
    ----------
    graphs : Molecules
    known : int64 [G]
        Labels that are not missing.
    nodes, edges : int64 [G]
    """

    graphs: Molecules
    known: Int
    nodes: Int
    edges: Int

    def counts(self, chosen: Int) -> GraphCounts:
        """Return the sizes of some of the graphs."""
        return GraphCounts(len(chosen), int(self.nodes[chosen].sum()), int(self.edges[chosen].sum()))

    @property
    def parts(self) -> list[Int]:
        """Numbers of the graphs of each pass of an evaluation."""
        everything = np.arange(len(self.nodes))
        cuts = range(0, max(len(everything), 1), LARGEST_EVALUATION)
        return [everything[cut : cut + LARGEST_EVALUATION] for cut in cuts]


class MoleculePasses(Supervised):
    """Passes of `FastMolecules` on one CPU thread.

    Parameters
    ----------
    train, held_out : GraphSet
    kernels : FastMolecules
        Shared by all clients of a shape.
    flops : ModelFlops
    task : Task
        Prediction task.
    """

    def __init__(
        self, train: GraphSet, held_out: GraphSet, kernels: FastMolecules, flops: ModelFlops, task: Task
    ) -> None:
        self._kernels, self._flops, self._task = kernels, flops, task
        self._train, self._held_out = self._part(train), self._part(held_out)

    def with_held_out(self, graphs: GraphSet) -> Self:
        """Return passes that share the training graphs and have other held-out ones."""
        other = copy(self)
        other._held_out = self._part(graphs)
        return other

    def _part(self, graphs: GraphSet) -> _Part:
        labels = graphs.labels if graphs.labels.ndim == 2 else graphs.labels[:, None]
        targets = labels.astype(np.float32).astype(np.float64)
        if isinstance(self._task, Regression):
            targets = (targets - self._task.center) / self._task.scale
        topology = graphs.topology
        degrees = np.diff(topology.row_ptr[topology.graph_ptr])
        known = (~np.isnan(targets)).sum(axis=1)
        return _Part(self._kernels.molecules(graphs, targets), known, np.diff(topology.graph_ptr), degrees)

    def batch(self, graphs: Int | None) -> Any:
        """Return the numbers of training graphs."""
        return np.arange(len(self._train.nodes)) if graphs is None else graphs

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""
        results = self._kernels.step(self._train.graphs, batch, streams)
        return self._pass(self._train, batch, results, training=True)

    def epoch(
        self,
        batches: Sequence[Int],
        streams: Sequence[DropoutStreams],
        optimizer: OptimizerOptions,
        state: AdamState,
    ) -> Pass:
        """Take an optimizer step for each batch of one local epoch; the parameters change in place.

        Parameters
        ----------
        batches : sequence of int64 [*]
            Numbers of each batch's training graphs.
        streams : sequence of DropoutStreams
            Dropout of each step.
        optimizer : OptimizerOptions
        state : AdamState
            Moments and step count; moved on by the steps.
        """
        descent = steps_ahead(optimizer, state, len(batches))
        moments = Moments(state.mean.numpy(), state.square.numpy())
        results = self._kernels.train(self._train.graphs, batches, streams, descent, moments)
        chosen = np.concatenate(batches)
        return self._pass(self._train, chosen, results, training=True, steps=len(batches))

    def evaluate(self) -> Pass:
        """Run all held-out graphs forward, without dropout."""
        return self._evaluate(self._held_out)

    def evaluate_training(self) -> Pass:
        """Run all training graphs forward, without dropout."""
        return self._evaluate(self._train)

    def _evaluate(self, part: _Part) -> Pass:
        results = self._kernels.evaluate(part.graphs, part.parts)
        return self._pass(part, np.arange(len(part.nodes)), results, training=False)

    def embed(self) -> Embedding:
        """Embed all training graphs without dropout, up to the readout's mean."""
        part = self._train
        results = self._kernels.evaluate(part.graphs, part.parts)
        counts = part.counts(np.arange(len(part.nodes)))
        mean = results.pooled.mean(axis=0, dtype=np.float64)
        executed = self._kernels.flops(counts, training=False)
        return Embedding(mean, self._flops.forward(counts).total, executed)

    def _pass(
        self, part: _Part, chosen: Int, results: GraphResults, *, training: bool, steps: int = 1
    ) -> Pass:
        counts = part.counts(chosen)
        of_model = self._flops.training(counts) if training else self._flops.forward(counts)
        executed = self._kernels.flops(counts, training=training)
        return Pass(self._outcome(part, chosen, results), of_model.total, executed, steps=steps)

    def _outcome(self, part: _Part, chosen: Int, results: GraphResults) -> Outcome:
        if self._task.labels == "classification":
            right = results.outputs.argmax(axis=1) == part.graphs.targets[chosen, 0]
            return Outcome(results.losses, right.astype(np.uint8))
        scores: npt.NDArray[np.float32] = results.outputs
        if isinstance(self._task, Regression):
            scores = (scores * self._task.scale + self._task.center).astype(np.float32)
        nothing = np.zeros(len(chosen), np.uint8)
        return Outcome(results.losses, nothing, part.known[chosen], scores)
