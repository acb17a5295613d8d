"""Floating-point operations of unsupervised objectives, counted as `fedmpi.models.flops` does (no torch).

A weighted view's edges cost a product and an addition each. Similarities between vectors are dense
products; normalisation, softmax and the like are elementwise and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from fedmpi.models.flops import Flops, GraphCounts
from fedmpi.models.options import GinEncoderOptions, ModelOptions, MvgrlEncoderOptions, Shape
from fedmpi.objectives.options import InfoGraphOptions, ObjectiveOptions


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

    objective: ObjectiveOptions
    model: ModelOptions
    shape: Shape

    def vectors(self, original: ViewCounts, other: ViewCounts | None, *, executed: bool) -> Flops:
        """Return the FLOPs of giving vectors to graphs: the original view, for MVGRL both."""
        if isinstance(self.model, MvgrlEncoderOptions):
            assert other is not None
            return _added(*(self._gcn(self.model, view, executed)[0] for view in (original, other)))
        return self.encoding(original, executed=executed)

    def encoding(self, view: ViewCounts, *, executed: bool) -> Flops:
        """Return the FLOPs of encoding one view without gradients, as frozen copies do."""
        assert isinstance(self.model, GinEncoderOptions)
        return self._gin(self.model, view, executed)[0]

    def step(self, original: ViewCounts, other: ViewCounts | None, *, executed: bool) -> Flops:
        """Return the FLOPs of one forward and backward pass; frozen copies are counted apart."""
        counts, model = original.counts, self.model
        if isinstance(model, MvgrlEncoderOptions):
            assert other is not None
            pair = 4 * counts.nodes * counts.graphs * model.dimension
            views = [self._gcn(model, view, executed)[1] for view in (original, other)]
            return _added(*views, Flops(3 * pair, 0))
        assert isinstance(model, GinEncoderOptions)
        first = self._gin(model, original, executed)[1]
        if isinstance(self.objective, InfoGraphOptions):
            return _added(first, self.loss(counts))
        assert other is not None
        return _added(first, self._gin(model, other, executed)[1], self.loss(counts))

    def loss(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of the loss of `GinEncoder`'s vectors and its gradient; heads belong to it."""
        assert isinstance(self.model, GinEncoderOptions)
        length = self.model.dimension
        if isinstance(self.objective, InfoGraphOptions):
            heads = 8 * (counts.nodes + counts.graphs) * length**2
            return Flops(3 * (heads + 2 * counts.nodes * counts.graphs * length), 0)
        similarities = 8 * counts.graphs**2 * length
        return Flops(3 * similarities, 0)

    def _gin(self, model: GinEncoderOptions, view: ViewCounts, executed: bool) -> tuple[Flops, Flops]:
        """Return forward, and forward with backward; the features need no gradient."""
        hidden, nodes = model.hidden, view.counts.nodes
        widths = [self.shape.width] + [hidden] * (model.layers - 1)
        dense = sum(2 * nodes * (width + hidden) * hidden for width in widths)
        sums = [view.sums(width, executed=executed) for width in widths]
        pooling = view.pooling(model.dimension, executed=executed)
        backward = 3 * dense - 2 * nodes * widths[0] * hidden
        return Flops(dense, sum(sums) + pooling), Flops(backward, sum(sums) + sum(sums[1:]) + pooling)

    def _gcn(self, model: MvgrlEncoderOptions, view: ViewCounts, executed: bool) -> tuple[Flops, Flops]:
        """Return forward, and forward with backward, of one view; frozen layers have no backward."""
        hidden, counts = model.hidden, view.counts
        widths = [self.shape.width] + [hidden] * (model.layers - 1)
        layers = [2 * counts.nodes * width * hidden for width in widths]
        sums = model.layers * view.sums(hidden, executed=executed, self_loops=False)
        pooling = view.pooling(model.layers * hidden, executed=executed)
        inputs = 4 * hidden * (counts.nodes * hidden + counts.graphs * model.layers * hidden)
        heads = inputs + 4 * hidden * hidden * (counts.nodes + counts.graphs)
        forward = Flops(sum(layers) + heads, sums + pooling)
        if not model.register_layers:
            return forward, Flops(sum(layers) + 3 * heads - inputs, sums + pooling)
        return forward, Flops(3 * (sum(layers) + heads) - layers[0], 2 * sums + pooling)


def _added(*parts: Flops) -> Flops:
    return reduce(lambda a, b: Flops(a.dense + b.dense, a.sparse + b.sparse), parts)
