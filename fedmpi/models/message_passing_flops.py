"""FLOPs of the models of torch-geometric's layers; conventions as in `fedmpi.models.flops`."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.models.counts import Flops, GraphCounts
from fedmpi.models.options import (
    GatOptions,
    GcnOptions,
    MessagePassingOptions,
    MpnnOptions,
    SageOptions,
    SgcOptions,
    Shape,
)

_ATTENTION = 6
"""An entry of attention (score, exponential, share of a row) takes about so many times one of a sum."""


@dataclass(frozen=True)
class MessagePassingFlops:
    """Counts of one model of one shape; sums have an entry per edge, and per self loop if there is one."""

    options: MessagePassingOptions
    shape: Shape

    def _convolutions(self, counts: GraphCounts) -> tuple[int, int]:
        """Return products and sums of all convolutions together."""
        hidden, layers = self.options.hidden, self.options.layers
        product = 2 * counts.nodes * hidden * hidden
        closed, edges = (counts.edges + counts.nodes) * hidden, counts.edges * hidden
        match self.options:
            case GcnOptions():
                return layers * product, layers * closed
            case GatOptions():
                return layers * product, layers * (closed + 4 * counts.nodes * hidden)
            case SageOptions():
                return layers * 2 * product, layers * edges
            case SgcOptions():
                return product, layers * closed
            case MpnnOptions():
                message = 2 * counts.edges * (2 * hidden + self.shape.edges) * hidden
                return layers * (message + 2 * product), layers * edges
        raise AssertionError(self.options.name)

    def _ends(self, counts: GraphCounts) -> tuple[int, int]:
        """Return the products of the first Linear, and of the head."""
        hidden = self.options.hidden
        layers = self.options.head_layers
        head = (2 * hidden * self.shape.classes + (layers - 1) * 2 * hidden * hidden) if layers else 0
        return counts.first_layer(self.shape.width, hidden, executed=False), counts.heads * head

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""
        products, sums = self._convolutions(counts)
        return Flops(sum(self._ends(counts)) + products, sums + counts.pooled * self.options.hidden)

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass; the features need no gradient."""
        forward, (first, _) = self.forward(counts), self._ends(counts)
        return Flops(3 * forward.dense - first, forward.sparse + self._convolutions(counts)[1])

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`. It is the analytic count, except for MPNN.

        MPNN's kernels multiply each node's state once by the receivers' part of M and once by the senders',
        where Eq. 1 has both for each edge; edge attributes need no gradient.
        """
        return self._by_rows(counts, training, kernels).total

    def work(self, counts: GraphCounts, *, training: bool, kernels: str) -> Flops:
        """Return the same as placement reckons with it: `_ATTENTION` times as many sums for GAT's entries."""
        found = self._by_rows(counts, training, kernels)
        if not isinstance(self.options, GatOptions):
            return found
        entries = self.options.layers * (counts.edges + counts.nodes) * self.options.hidden
        return Flops(found.dense, found.sparse + (_ATTENTION - 1) * entries * (2 if training else 1))

    def _by_rows(self, counts: GraphCounts, training: bool, kernels: str) -> Flops:
        counted = self.training(counts) if training else self.forward(counts)
        if kernels != "reference":
            first, width = self._ends(counts)[0], self.shape.width
            skipped = first - counts.first_layer(width, self.options.hidden, executed=True)
            counted = Flops(counted.dense - (2 if training else 1) * skipped, counted.sparse)
        if kernels == "reference" or not isinstance(self.options, MpnnOptions):
            return counted
        hidden, layers = self.options.hidden, self.options.layers
        saved = 4 * (counts.edges - counts.nodes) * hidden * hidden
        bonds = 2 * counts.edges * self.shape.edges * hidden
        return Flops(counted.dense - layers * (3 * saved + bonds if training else saved), counted.sparse)
