"""Analytic floating-point operations of a model on given graphs (imports without torch).

A dense product of m x k by k x n counts 2 m n k; a sum over neighbours counts
one addition per edge and feature, pooling one per node and feature. A
normalisation layer counts the sums over nodes, graphs or features that it takes.
Elementwise work (activations, dropout, losses, the optimizer) is not counted. The backward
pass takes one product for the weights and one for the input where the input
needs a gradient. See docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedmpi.models.counts import Flops, GraphCounts, ModelFlops
from fedmpi.models.options import GinOptions, Shape

__all__ = ["Flops", "GinFlops", "GraphCounts", "ModelFlops"]

_NORM_SUMS = {"batch": (0, 4), "layer": (2, 6), "graph": (2, 4)}
"""Sums over all elements that a normalisation layer takes, in evaluation and in training.

Mean and variance; backward the products of the gradient with 1 and with the normalised rows, over the
rows for the parameters and, where that is another sum, over what was normalised.
"""

_CSR_SUMS = {"batch": (0, 4), "layer": (2, 6), "graph": (4, 10)}
"""FLOPs per element of the same as the CSR kernels do them: sums over graphs multiply by stored ones."""


@dataclass(frozen=True)
class GinFlops:
    """Counts of one GIN of one shape."""

    options: GinOptions
    shape: Shape

    def _norm_sums(self, counts: GraphCounts, sums: Mapping[str, tuple[int, int]], training: bool) -> int:
        each = sum(sums[name][training] for name in self.options.norms)
        return self.options.layers * each * counts.nodes * self.options.hidden

    def _first_layer(self, counts: GraphCounts) -> int:
        return counts.first_layer(self.shape.width, self.options.hidden, executed=False)

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""
        hidden, layers = self.options.hidden, self.options.layers
        square = 2 * hidden * hidden
        head = counts.heads * (square + 2 * hidden * self.shape.classes)
        dense = self._first_layer(counts) + layers * 2 * counts.nodes * square + head
        sums = (layers * counts.edges + counts.pooled) * hidden
        return Flops(dense, sums + self._norm_sums(counts, _NORM_SUMS, False))

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass; the features need no gradient."""
        forward = self.forward(counts)
        sparse_backward = self.options.layers * counts.edges * self.options.hidden
        dense = 3 * forward.dense - self._first_layer(counts)
        of_norms = [self._norm_sums(counts, _NORM_SUMS, training) for training in (False, True)]
        return Flops(dense, forward.sparse + sparse_backward + of_norms[1] - of_norms[0])

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`.

        The CSR kernels multiply by stored ones and add, for every edge and self
        loop, forward and backward; pooling likewise, forward only.
        """
        flops = self.training(counts) if training else self.forward(counts)
        if kernels == "reference":
            return flops.total
        skipped = self._first_layer(counts) - counts.first_layer(
            self.shape.width, self.options.hidden, executed=True
        )
        flops = Flops(flops.dense - (2 if training else 1) * skipped, flops.sparse)
        hidden, layers = self.options.hidden, self.options.layers
        if kernels == "grouped":  # additions alone, in bags; `counts` has what padding adds
            sums = (layers * (counts.edges + counts.nodes) + counts.nodes) * hidden
            return flops.dense + (2 if training else 1) * sums
        products = 2 * layers * (counts.edges + counts.nodes) * hidden
        products *= 2 if training else 1
        return (
            flops.dense + products + 2 * counts.pooled * hidden + self._norm_sums(counts, _CSR_SUMS, training)
        )
