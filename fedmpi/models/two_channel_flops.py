"""FLOPs of FedStar's network (imports without torch); the rules are those of `fedmpi.models.flops`."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.models.counts import Flops, GraphCounts
from fedmpi.models.options import FedStarOptions, Shape


@dataclass(frozen=True)
class FedStarFlops:
    """Counts for one model of `shape`."""

    options: FedStarOptions
    shape: Shape

    def _inputs(self, counts: GraphCounts) -> int:
        """Products with features and encodings, which need no gradient."""
        return 2 * counts.nodes * (self.shape.width + self.options.encoding) * self.options.hidden

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""
        hidden, layers = self.options.hidden, self.options.layers
        square = 2 * hidden * hidden
        layer = counts.nodes * (2 + 1 + 1) * square  # the MLP's two products, and the GCN's
        merge = counts.nodes * 2 * square
        head = counts.graphs * (square + 2 * hidden * self.shape.classes)
        dense = self._inputs(counts) + layers * layer + merge + head
        return Flops(dense, (3 * layers * counts.edges + counts.nodes) * hidden)

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass."""
        forward = self.forward(counts)
        backward = 3 * self.options.layers * counts.edges * self.options.hidden
        return Flops(3 * forward.dense - self._inputs(counts), forward.sparse + backward)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`."""
        flops = self.training(counts) if training else self.forward(counts)
        if kernels == "reference":
            return flops.total
        hidden, layers = self.options.hidden, self.options.layers
        products = 2 * 3 * layers * (counts.edges + counts.nodes) * hidden
        return flops.dense + (2 if training else 1) * products + 2 * counts.nodes * hidden
