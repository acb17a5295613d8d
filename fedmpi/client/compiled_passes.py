"""Training steps and evaluation by compiled kernels; an epoch may be one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.client.optimizer import AdamState, steps_ahead
from fedmpi.client.passes import Embedded, Pass, Supervised, in_parts, topology_counts
from fedmpi.client.targets import predicted, targets_of
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.molecules.arrays import GraphResults, Molecules
from fedmpi.kernels.molecules.fast import FastMolecules, Moments
from fedmpi.kernels.pooled_network import EmbeddingTerm, FastNetwork
from fedmpi.models.counts import GraphCounts, ModelFlops
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import Task

_Evaluated = tuple[Any, npt.NDArray[Any], tuple[int, int]]
"""Graphs as compiled kernels evaluate them, their targets and the FLOPs of a pass."""


class CompiledPasses(Supervised):
    """Passes of compiled kernels on one CPU thread.

    Parameters
    ----------
    train, held_out : GraphSet
    kernels : FastNetwork
        Shared by all clients of a shape.
    flops : ModelFlops
    task : Task
        Prediction task.
    """

    def __init__(
        self, train: GraphSet, held_out: GraphSet, kernels: FastNetwork, flops: ModelFlops, task: Task
    ) -> None:
        self._batch = kernels.prepare(replace(train, labels=targets_of(task, train.labels)))
        self._kernels, self._flops, self._task = kernels, flops, task
        self._counted: tuple[Any, tuple[int, int]] = (None, (0, 0))
        super().__init__(train, held_out)

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs packed anew, or all of them."""
        return self._batch if graphs is None else self._batch.take(graphs)

    def step(
        self, batch: Any, streams: DropoutStreams, term: EmbeddingTerm | None = None, *, alone: bool = False
    ) -> Pass:
        """Run forward and backward; `alone`, the term takes the place of the task's loss."""
        outcome = predicted(self._task, self._kernels.step(batch, streams, term, alone=alone))
        if batch is not self._counted[0]:
            model_flops = self._flops.training(GraphCounts(*batch.sizes)).total
            self._counted = batch, (model_flops, self._kernels.step_flops(batch))
        return Pass(outcome, *self._counted[1])

    @property
    def descends(self) -> bool:
        """See `Passes.descends`."""
        return self._kernels.descends

    def descend(
        self,
        batches: Sequence[Any],
        streams: Sequence[DropoutStreams],
        optimizer: OptimizerOptions,
        state: AdamState,
    ) -> list[Pass]:
        """See `Passes.descend`."""
        descent = steps_ahead(optimizer, state, len(batches))
        moments = state.mean.numpy(), state.square.numpy()
        outcomes = self._kernels.descend(batches, streams, descent, *moments)
        flops = [
            (self._flops.training(GraphCounts(*batch.sizes)).total, self._kernels.step_flops(batch))
            for batch in batches
        ]
        return [
            Pass(predicted(self._task, outcome), *both) for outcome, both in zip(outcomes, flops, strict=True)
        ]

    def end_round(self) -> None:
        """See `Passes.end_round`."""
        self._counted = None, (0, 0)

    def _part(self, graphs: GraphSet) -> _Evaluated:
        levels, targets = self._kernels.levels(graphs), targets_of(self._task, graphs.labels)
        examples = None if graphs.places is None else len(graphs.places)
        counts = replace(topology_counts(graphs.topology), examples=examples)
        return levels, targets, (self._flops.forward(counts).total, self._kernels.evaluation_flops(levels))

    def _judge(self, part: _Evaluated) -> Pass:
        graphs, targets, flops = part
        return Pass(predicted(self._task, self._kernels.evaluate(graphs, targets)), *flops)

    def _embed(self, part: _Evaluated) -> Embedded:
        return Embedded(self._kernels.embed(part[0]), *part[2])


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
        super().__init__(train, held_out)
        self._whole: _Part = self.train.parts()[0]

    def _parts(self, graphs: GraphSet) -> list[_Part]:
        """Return the graphs as one part, which the kernels divide."""
        return [self._part(graphs)]

    def _part(self, graphs: GraphSet) -> _Part:
        targets = targets_of(self._task, graphs.labels).astype(np.float64)
        targets = targets if targets.ndim == 2 else targets[:, None]
        topology = graphs.topology
        degrees = np.diff(topology.row_ptr[topology.graph_ptr])
        known = (~np.isnan(targets)).sum(axis=1)
        return _Part(self._kernels.molecules(graphs, targets), known, np.diff(topology.graph_ptr), degrees)

    def batch(self, graphs: Int | None) -> Any:
        """Return the numbers of training graphs."""
        return np.arange(len(self._whole.nodes)) if graphs is None else graphs

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""
        results = self._kernels.step(self._whole.graphs, batch, streams)
        return self._pass(self._whole, batch, results, training=True)

    @property
    def descends(self) -> bool:
        """See `Passes.descends`."""
        return True

    def descend(
        self,
        batches: Sequence[Int],
        streams: Sequence[DropoutStreams],
        optimizer: OptimizerOptions,
        state: AdamState,
    ) -> list[Pass]:
        """See `Passes.descend`."""
        descent = steps_ahead(optimizer, state, len(batches))
        moments = Moments(state.mean.numpy(), state.square.numpy())
        results = self._kernels.train(self._whole.graphs, batches, streams, descent, moments)
        chosen = np.concatenate(batches)
        return [self._pass(self._whole, chosen, results, training=True, steps=len(batches))]

    def _judge(self, part: _Part) -> Pass:
        return self._pass(part, np.arange(len(part.nodes)), self._evaluated(part), training=False)

    def _embed(self, part: _Part) -> Embedded:
        counts = part.counts(np.arange(len(part.nodes)))
        return Embedded(self._evaluated(part).pooled, *self._count(counts, training=False))

    def _evaluated(self, part: _Part) -> GraphResults:
        return self._kernels.evaluate(part.graphs, in_parts(len(part.nodes)))

    def _pass(
        self, part: _Part, chosen: Int, results: GraphResults, *, training: bool, steps: int = 1
    ) -> Pass:
        flops = self._count(part.counts(chosen), training=training)
        return Pass(self._outcome(part, chosen, results), *flops, steps=steps)

    def _count(self, counts: GraphCounts, *, training: bool) -> tuple[int, int]:
        of_model = self._flops.training(counts) if training else self._flops.forward(counts)
        return of_model.total, self._kernels.flops(counts, training=training)

    def _outcome(self, part: _Part, chosen: Int, results: GraphResults) -> Outcome:
        if self._task.labels == "classification":
            right = results.outputs.argmax(axis=1) == part.graphs.targets[chosen, 0]
            return Outcome(results.losses, right.astype(np.uint8))
        nothing = np.zeros(len(chosen), np.uint8)
        return predicted(self._task, Outcome(results.losses, nothing, part.known[chosen], results.outputs))
