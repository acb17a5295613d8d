"""A client's graphs and their views as the kernels of unsupervised objectives take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from fedmpi.client.passes import in_parts, topology_counts
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import ViewedGraphs, normalised
from fedmpi.graphs.packed import Int
from fedmpi.graphs.refinement.colours import ColouredGraphs, Rows
from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.kernels.encoder import FastEncoder
from fedmpi.models.counts import GraphCounts
from fedmpi.objectives.flops import ObjectiveFlops, ViewCounts
from fedmpi.objectives.unsupervised import OneEncoder, Views


@dataclass(frozen=True)
class Step:
    """A batch's views, and which training graphs they are (None: all, in order)."""

    views: Views
    numbers: Int | None


class _Batches:
    """What batches for any kernels have in common."""

    def take(self, numbers: Int | None) -> Step:
        """Return training graphs with their views; None stands for all, prepared once."""
        return self._whole if numbers is None else Step(self._views_of(numbers), numbers)

    @cached_property
    def _whole(self) -> Step:
        return Step(self._views_of(None), None)

    def _views_of(self, numbers: Int | None) -> Views:
        raise NotImplementedError

    def end_round(self) -> None:
        """Drop what is kept during a round: nothing, batches are the same in every round."""


@dataclass(eq=False)
class TorchBatches(_Batches):
    """Batches as torch's CSR products take them.

    Parameters
    ----------
    train, everything : ViewedGraphs
        Training graphs, and all graphs of the client.
    objective : OneEncoder
    flops : ObjectiveFlops
    device : torch.device or str
    """

    train: ViewedGraphs
    everything: ViewedGraphs
    objective: OneEncoder
    flops: ObjectiveFlops
    device: torch.device | str = "cpu"

    def _views_of(self, numbers: Int | None) -> Views:
        return self._views(self.train if numbers is None else self.train.take(numbers))

    @cached_property
    def all_parts(self) -> list[Views]:
        """Views that are embedded, on the device: all graphs, with other views where they count."""
        parts = self.everything.parts()
        return [self._views(part if self.objective.embeds_views else part.plain) for part in parts]

    @cached_property
    def train_parts(self) -> list[Batch]:
        """Training graphs without augmentation, on the device, for frozen copies."""
        if self.train is self.everything:
            return [views.original for views in self.all_parts if isinstance(views.original, Batch)]
        return [Batch.of(part.graphs, self.device) for part in self.train.parts()]

    def _views(self, part: ViewedGraphs) -> Views:
        return views_of(part, self.objective, self.device)

    def rows_of(self, step: Step) -> Int | None:
        """Return the rows of a batch among a copy's vectors of `train_parts`: its nodes or graphs."""
        if step.numbers is None or not self.objective.by_node:
            return step.numbers
        return self.train.graphs.topology.nodes_of(step.numbers)

    def step_flops(self, views: Views) -> int:
        """Return the FLOPs that a step does: by edges and nodes, as the CSR products work on them."""
        return self.flops.step(*counts_of(views), executed=True).total

    def encoding_flops(self, batch: Any) -> int:
        """Return the FLOPs of encoding without gradients: by edges and nodes, as a step's."""
        return self.flops.encoding(view_counts(batch), executed=True).total

    def vectors_flops(self, views: Views) -> int:
        """Return the FLOPs of embedding graphs: by edges and nodes, as a step's."""
        return self.flops.vectors(*counts_of(views), executed=True).total


@dataclass(eq=False)
class CompiledBatches(_Batches):
    """Batches as the compiled encoder takes them: rows of node classes.

    Parameters
    ----------
    train, everything : ViewedGraphs
        Training graphs, and all graphs of the client.
    objective : OneEncoder
    flops : ObjectiveFlops
    encoder : FastEncoder
    """

    train: ViewedGraphs
    everything: ViewedGraphs
    objective: OneEncoder
    flops: ObjectiveFlops
    encoder: FastEncoder

    def __post_init__(self) -> None:
        train, everything = self.train, self.everything
        depth, by_node = self.encoder.layers, self.objective.reads_nodes
        self._original = ColouredGraphs(train.graphs, None, depth, by_node=by_node)
        self._diffused = None
        if train.diffused is not None:
            self._diffused = ColouredGraphs(train.graphs, train.diffused, depth, by_node=False)
        self._everything = self._original
        if everything is not train:
            self._everything = ColouredGraphs(everything.graphs, None, depth, by_node=False)

    def _views_of(self, numbers: Int | None) -> Views:
        diffused = None if self._diffused is None else self._diffused.take(numbers)
        return Views(self._original.take(numbers), diffused)

    @cached_property
    def train_parts(self) -> list[Rows]:
        """Training graphs without augmentation, for frozen copies."""
        return _parts(self._original)

    @cached_property
    def all_parts(self) -> list[Views]:
        """All graphs as they are."""
        if self._everything is self._original:
            return [Views(rows) for rows in self.train_parts]
        return [Views(rows) for rows in _parts(self._everything)]

    def rows_of(self, step: Step) -> Int | None:
        """Return the rows of a batch among a copy's vectors: graphs, or places of its classes of nodes."""
        if not self.objective.by_node:
            return step.numbers
        assert isinstance(step.views.original, Rows) and step.views.original.node_classes is not None
        return self._place_of_node[step.views.original.node_classes.first]

    @cached_property
    def _place_of_node(self) -> Int:
        """Place of each training node's class in a copy's vectors, [N]."""
        places, classes = [], 0
        for rows in self.train_parts:
            assert rows.node_classes is not None
            places.append(classes + rows.node_classes.class_of_node.astype(np.int64))
            classes += len(rows.node_classes.first)
        return np.concatenate(places)

    def step_flops(self, views: Views) -> int:
        """Return the FLOPs that a step does: the rows of every layer, and the loss by its vectors."""
        rows = views.original
        assert isinstance(rows, Rows)
        vectors = rows.num_nodes if rows.node_classes is None else len(rows.node_classes.first)
        total = self.flops.loss(GraphCounts(rows.num_graphs, vectors, rows.num_edges)).total
        for view in (rows, views.diffused):
            if isinstance(view, Rows):
                total += self.encoder.flops(view, training=True)
        return total

    def encoding_flops(self, batch: Any) -> int:
        """Return the FLOPs of encoding without gradients: the rows of every layer."""
        return self.encoder.flops(batch, training=False)

    def vectors_flops(self, views: Views) -> int:
        """Return the FLOPs of embedding graphs: the rows of every layer."""
        return self.encoding_flops(views.original)


ViewBatches = TorchBatches | CompiledBatches
"""Batches of one client's graphs, for some kernels."""


def _parts(graphs: ColouredGraphs) -> list[Rows]:
    return [graphs.take(numbers) for numbers in in_parts(graphs.num_graphs)]


def views_of(part: ViewedGraphs, objective: OneEncoder, device: torch.device | str) -> Views:
    """Return graphs and those of their views that there are, on a device, as an objective takes them."""
    original = Batch.of(part.graphs, device)
    diffused = None if part.diffused is None else WeightedBatch.view_of(original, part.diffused)
    if not objective.embeds_views:
        return Views(original, diffused)
    return Views(original, diffused, WeightedBatch.view_of(original, normalised(original.topology)))


def counts_of(views: Views) -> tuple[ViewCounts, ViewCounts | None]:
    """Return what the first view works on (MVGRL's is the weighted adjacency), and the diffused one."""
    first = views.original if views.adjacency is None else views.adjacency
    diffused = None if views.diffused is None else view_counts(views.diffused)
    return view_counts(first), diffused


def view_counts(batch: Batch | Rows) -> ViewCounts:
    """Return what a pass over one view works on, equal rows counted each."""
    if isinstance(batch, Rows):
        return ViewCounts(GraphCounts(batch.num_graphs, batch.num_nodes, batch.num_edges), batch.weighted)
    return ViewCounts(topology_counts(batch.topology), isinstance(batch, WeightedBatch))
