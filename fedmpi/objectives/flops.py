"""Floating-point operations of unsupervised objectives, counted as `fedmpi.models.flops` does (no torch).

A weighted view's edges cost a product and an addition each. Similarities between vectors are dense
products; normalisation, softmax and the like are elementwise and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from fedmpi.models.counts import Flops, GraphCounts
from fedmpi.models.options import MvgrlEncoderOptions, Shape
from fedmpi.objectives import options as objectives


@dataclass(frozen=True)
class ViewCounts:
    """What one view of a batch works on; `weighted` if its edges have weights."""

    counts: GraphCounts
    weighted: bool

    def sums(self, width: int, *, executed: bool, self_loops: bool = True) -> int:
        """Return the operations of one sum over neighbours; the CSR kernels multiply every stored entry."""
        if executed:
            return 2 * (self.counts.edges + self.counts.nodes * self_loops) * width
        return (2 if self.weighted else 1) * self.counts.edges * width

    def pooling(self, width: int, *, executed: bool) -> int:
        """Return the operations of summing nodes into graphs."""
        return (2 if executed else 1) * self.counts.nodes * width


@dataclass(frozen=True)
class ObjectiveFlops:
    """Counts of one objective with one model of one shape.

    ``executed`` asks for what the CSR kernels do instead of what the model needs.
    """

    objective: objectives.ObjectiveOptions
    model: Any
    shape: Shape

    def vectors(self, original: ViewCounts, other: Any, *, executed: bool) -> Flops:
        """Return the FLOPs of giving vectors to graphs: the original view, for MVGRL both."""
        if not isinstance(self.model, MvgrlEncoderOptions):
            return self.encoding(original, executed=executed)
        convolved = self.convolutions(original, other, executed=executed)
        return _added(convolved, self.graph_heads(original.counts))

    def copies(self, local_epochs: int) -> int:
        """Return how often a round encodes a client's graphs by frozen copies of the model.

        The received one once, the previous epoch's after every epoch but the last; none where there is
        one epoch. By rounds: the received and the previous one once.
        """
        if isinstance(self.objective, objectives.FclgOptions | objectives.FclgNodesOptions):
            return 2 if self.objective.keeps_last_round else local_epochs * (local_epochs > 1)
        return int(isinstance(self.objective, objectives.IntraKlOptions | objectives.IntraMseOptions))

    def encoding(self, view: ViewCounts, *, executed: bool) -> Flops:
        """Return the FLOPs of encoding one view without gradients, as frozen copies do."""
        return self._gin(view, executed)[0]

    def step(self, original: ViewCounts, other: Any, *, executed: bool) -> Flops:
        """Return the FLOPs of one forward and backward pass; frozen copies are counted apart."""
        counts = original.counts
        if isinstance(self.model, MvgrlEncoderOptions):
            parts = [self.convolutions(original, other, executed=executed), self.heads_and_bounds(counts)]
            if self.model.register_layers:
                parts.append(self._convolutions_back(original, other, executed=executed))
            return _added(*parts)
        views = [original] if isinstance(self.objective, objectives.InfoGraphOptions) else [original, other]
        return _added(*(self._gin(view, executed)[1] for view in views), self.loss(counts))

    def loss(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of the loss of `GinEncoder`'s vectors and its gradient; heads belong to it."""
        length = self.model.dimension
        if isinstance(self.objective, objectives.InfoGraphOptions):
            heads = 8 * (counts.nodes + counts.graphs) * length**2
            return Flops(3 * (heads + 2 * counts.nodes * counts.graphs * length), 0)
        similarities = 8 * counts.graphs**2 * length
        return Flops(3 * similarities, 0)

    def _gin(self, view: ViewCounts, executed: bool) -> tuple[Flops, Flops]:
        """Return forward, and forward with backward; the features need no gradient."""
        hidden, nodes = self.model.hidden, view.counts.nodes
        dense = sum(2 * nodes * (width + hidden) * hidden for width in self._widths)
        sums = [view.sums(width, executed=executed) for width in self._widths]
        pooling = view.pooling(self.model.dimension, executed=executed)
        backward = 3 * dense - 2 * nodes * self._widths[0] * hidden
        return Flops(dense, sum(sums) + pooling), Flops(backward, sum(sums) + sum(sums[1:]) + pooling)

    def convolutions(self, *views: ViewCounts, executed: bool) -> Flops:
        """Return the FLOPs of MVGRL's convolutions and sums over graphs, of both views, forward."""
        width = self.model.layers * self.model.hidden
        return _added(
            *(
                Flops(sum(layers), sums + view.pooling(width, executed=executed))
                for view, layers, sums in self._convolved(views, executed)
            )
        )

    def _convolutions_back(self, *views: ViewCounts, executed: bool) -> Flops:
        """Return the FLOPs of their backward pass, and of the heads' for what these take from them."""
        return _added(
            *(
                Flops(2 * sum(layers) - layers[0] + self._head_inputs(view.counts), sums)
                for view, layers, sums in self._convolved(views, executed)
            )
        )

    def _convolved(
        self, views: Sequence[ViewCounts], executed: bool
    ) -> Iterator[tuple[ViewCounts, list[int], int]]:
        """Yield each view with the dense products of its layers, and their sums over neighbours."""
        hidden = self.model.hidden
        for view in views:
            layers = [2 * view.counts.nodes * width * hidden for width in self._widths]
            sums = self.model.layers * view.sums(hidden, executed=executed, self_loops=False)
            yield view, layers, sums

    def heads_and_bounds(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of MVGRL's heads and bounds, of both views, forward and backward."""
        square = self.model.hidden**2
        heads = self._head_inputs(counts) + 4 * square * (counts.nodes + counts.graphs)
        pair = 4 * counts.nodes * counts.graphs * self.model.dimension
        return Flops(2 * (3 * heads - self._head_inputs(counts)) + 3 * pair, 0)

    def graph_heads(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of MVGRL's head for graphs, of both views, forward."""
        return Flops(2 * 4 * counts.graphs * (self.model.layers + 1) * self.model.hidden**2, 0)

    def _head_inputs(self, counts: GraphCounts) -> int:
        """Return the operations of both heads' maps from what the convolutions of one view say."""
        return int(4 * self.model.hidden**2 * (counts.nodes + counts.graphs * self.model.layers))

    @property
    def _widths(self) -> list[int]:
        """Widths of what each layer takes."""
        return [self.shape.width] + [self.model.hidden] * (self.model.layers - 1)


def _added(*parts: Flops) -> Flops:
    return reduce(lambda a, b: Flops(a.dense + b.dense, a.sparse + b.sparse), parts)
