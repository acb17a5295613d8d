"""FLOPs of RGCN with DistMult; conventions as in `fedmpi.models.flops`."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.models.counts import Flops, GraphCounts
from fedmpi.models.options import RgcnOptions, Shape


@dataclass(frozen=True)
class RgcnFlops:
    """Counts of one model of one shape; `GraphCounts.edges` are triples, each of which sends both ways.

    A learned vector for each node (features ``identity``) is looked up, not multiplied: entries of sparse
    features alone count.
    """

    options: RgcnOptions
    shape: Shape

    def _first(self, counts: GraphCounts) -> int:
        return counts.first_layer(self.shape.width, self.options.hidden, executed=True)

    def _convolutions(self, counts: GraphCounts) -> tuple[int, int]:
        """Return products and sums of all layers: a block-diagonal product for each message."""
        hidden, layers = self.options.hidden, self.options.layers
        messages = 2 * counts.edges
        products = 2 * counts.nodes * hidden * hidden + 2 * messages * hidden * (
            hidden // self.options.blocks
        )
        return layers * products, layers * messages * hidden

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass; the head multiplies both states, then scores relations."""
        products, sums = self._convolutions(counts)
        scored = self.shape.classes if counts.outputs is None else counts.outputs
        head = counts.heads * self.options.hidden * (1 + 2 * scored)
        return Flops(self._first(counts) + products + head, sums)

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass; the features need no gradient."""
        forward = self.forward(counts)
        return Flops(3 * forward.dense - self._first(counts), 2 * forward.sparse)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`: the analytic count."""
        return (self.training(counts) if training else self.forward(counts)).total
