"""Analytic floating-point operations of a model on given graphs (imports without torch).

A dense product of m x k by k x n counts 2 m n k; a sum over neighbours counts
one addition per edge and feature, pooling one per node and feature. A
normalisation layer counts the sums over nodes, graphs or features that it takes.
Elementwise work (activations, dropout, losses, the optimizer) is not counted. The backward
pass takes one product for the weights and one for the input where the input
needs a gradient. See docs/metrics.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedmpi.models import options as models
from fedmpi.models.counts import Flops, GraphCounts, ModelFlops

_NORM_SUMS = {"batch": (0, 4), "layer": (2, 6), "graph": (2, 4)}
"""Sums over all elements that a normalisation layer takes, in evaluation and in training.

Mean and variance; backward the products of the gradient with 1 and with the normalised rows, over the
rows for the parameters and, where that is another sum, over what was normalised.
"""

_CSR_SUMS = {"batch": (0, 4), "layer": (2, 6), "graph": (4, 10)}
"""FLOPs per element of the same as the CSR kernels do them: sums over graphs multiply by stored ones."""


class Parts(NamedTuple):
    """FLOPs of a model's passes.

    Attributes
    ----------
    inputs : int
        Products with features, which need no gradient.
    products : int
        All products of a forward pass, these included; going back takes two for each.
    sums, sums_back : int
        Sums forward and back.
    """

    inputs: int
    products: int
    sums: int
    sums_back: int


@dataclass(frozen=True)
class FormulaFlops(ModelFlops):
    """Counts of one model of one shape by a formula: see `parts`."""

    options: Any
    shape: models.Shape

    @abstractmethod
    def parts(self, counts: GraphCounts) -> Parts:
        """Return what the passes consist of."""

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""
        parts = self.parts(counts)
        return Flops(parts.products, parts.sums)

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass; the features need no gradient."""
        inputs, products, sums, sums_back = self.parts(counts)
        return Flops(3 * products - inputs, sums + sums_back)


@dataclass(frozen=True)
class GinFlops(FormulaFlops):
    """Counts of one GIN of one shape."""

    options: models.GinOptions

    def _norm_sums(self, counts: GraphCounts, sums: Mapping[str, tuple[int, int]], training: bool) -> int:
        each = sum(sums[name][training] for name in self.options.norms)
        return self.options.layers * each * counts.nodes * self.options.hidden

    def _first_layer(self, counts: GraphCounts) -> int:
        return counts.first_layer(self.shape.width, self.options.hidden, executed=False)

    def parts(self, counts: GraphCounts) -> Parts:
        """See `FormulaFlops`."""
        hidden, layers, inputs = self.options.hidden, self.options.layers, self._first_layer(counts)
        square = 2 * hidden * hidden
        head = counts.heads * (square + 2 * hidden * self.shape.classes)
        norms, norms_training = (self._norm_sums(counts, _NORM_SUMS, training) for training in (False, True))
        sums = layers * counts.edges * hidden
        products = inputs + layers * 2 * counts.nodes * square + head
        forward = sums + counts.pooled * hidden + norms
        return Parts(inputs, products, forward, sums + norms_training - norms)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`.

        The CSR kernels multiply by stored ones and add, for every edge and self
        loop, forward and backward; pooling likewise, forward only.
        """
        flops = self.of(counts, training)
        if kernels == "reference":
            return flops.total
        hidden, layers = self.options.hidden, self.options.layers
        skipped = self._first_layer(counts) - counts.first_layer(self.shape.width, hidden, executed=True)
        flops = Flops(flops.dense - (2 if training else 1) * skipped, flops.sparse)
        if kernels == "grouped":  # additions alone, in bags; `counts` has what padding adds
            sums = (layers * (counts.edges + counts.nodes) + counts.pooled) * hidden
            return flops.dense + (2 if training else 1) * sums
        products = 2 * layers * (counts.edges + counts.nodes) * hidden
        products *= 2 if training else 1
        norms = self._norm_sums(counts, _CSR_SUMS, training)
        return flops.dense + products + 2 * counts.pooled * hidden + norms


@dataclass(frozen=True)
class FedStarFlops(FormulaFlops):
    """Counts of FedStar's network."""

    options: models.FedStarOptions

    def parts(self, counts: GraphCounts) -> Parts:
        """See `FormulaFlops`; structure encodings need no gradient either."""
        hidden, layers = self.options.hidden, self.options.layers
        inputs = 2 * counts.nodes * (self.shape.width + self.options.encoding) * hidden
        square = 2 * hidden * hidden
        layer = counts.nodes * (2 + 1 + 1) * square  # the MLP's two products, and the GCN's
        merge = counts.nodes * 2 * square
        head = counts.graphs * (square + 2 * hidden * self.shape.classes)
        sums = 3 * layers * counts.edges * hidden
        return Parts(inputs, inputs + layers * layer + merge + head, sums + counts.nodes * hidden, sums)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`."""
        flops = self.of(counts, training)
        if kernels == "reference":
            return flops.total
        hidden, layers = self.options.hidden, self.options.layers
        products = 2 * 3 * layers * (counts.edges + counts.nodes) * hidden
        return flops.dense + (2 if training else 1) * products + 2 * counts.nodes * hidden


_ATTENTION = 6
"""An entry of attention (score, exponential, share of a row) takes about so many times one of a sum."""


@dataclass(frozen=True)
class MessagePassingFlops(FormulaFlops):
    """Counts of one model of one shape; sums have an entry per edge, and per self loop if there is one."""

    options: models.MessagePassingOptions

    def _convolutions(self, counts: GraphCounts) -> tuple[int, int]:
        """Return products and sums of all convolutions together."""
        hidden, layers = self.options.hidden, self.options.layers
        product = 2 * counts.nodes * hidden * hidden
        closed, edges = (counts.edges + counts.nodes) * hidden, counts.edges * hidden
        match self.options:
            case models.GcnOptions():
                return layers * product, layers * closed
            case models.GatOptions():
                return layers * product, layers * (closed + 4 * counts.nodes * hidden)
            case models.SageOptions():
                return layers * 2 * product, layers * edges
            case models.SgcOptions():
                return product, layers * closed
            case models.MpnnOptions():
                message = 2 * counts.edges * (2 * hidden + self.shape.edges) * hidden
                return layers * (message + 2 * product), layers * edges
        raise AssertionError(self.options.name)

    def parts(self, counts: GraphCounts) -> Parts:
        """See `FormulaFlops`."""
        (products, sums), hidden = self._convolutions(counts), self.options.hidden
        layers = self.options.head_layers
        head = (2 * hidden * self.shape.classes + (layers - 1) * 2 * hidden * hidden) if layers else 0
        inputs = counts.first_layer(self.shape.width, hidden, executed=False)
        return Parts(inputs, inputs + products + counts.heads * head, sums + counts.pooled * hidden, sums)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`. It is the analytic count, except for MPNN.

        MPNN's kernels multiply each node's state once by the receivers' part of M and once by the senders',
        where Eq. 1 has both for each edge; edge attributes need no gradient.
        """
        return self._by_rows(counts, training, kernels).total

    def work(self, counts: GraphCounts, *, training: bool, kernels: str) -> Flops:
        """Return the same as placement reckons with it: `_ATTENTION` times as many sums for GAT's entries."""
        found = self._by_rows(counts, training, kernels)
        if not isinstance(self.options, models.GatOptions):
            return found
        entries = self.options.layers * (counts.edges + counts.nodes) * self.options.hidden
        return Flops(found.dense, found.sparse + (_ATTENTION - 1) * entries * (2 if training else 1))

    def _by_rows(self, counts: GraphCounts, training: bool, kernels: str) -> Flops:
        counted = self.of(counts, training)
        if kernels != "reference":
            widths = self.shape.width, self.options.hidden
            whole, done = (counts.first_layer(*widths, executed=executed) for executed in (False, True))
            skipped = whole - done
            counted = Flops(counted.dense - (2 if training else 1) * skipped, counted.sparse)
        if kernels == "grouped" and isinstance(self.options, models.SageOptions):  # sums with the node itself
            own = self.options.layers * counts.nodes * self.options.hidden
            return Flops(counted.dense, counted.sparse + (2 if training else 1) * own)
        if kernels == "reference" or not isinstance(self.options, models.MpnnOptions):
            return counted
        hidden, layers = self.options.hidden, self.options.layers
        saved = 4 * (counts.edges - counts.nodes) * hidden * hidden
        bonds = 2 * counts.edges * self.shape.edges * hidden
        return Flops(counted.dense - layers * (3 * saved + bonds if training else saved), counted.sparse)


@dataclass(frozen=True)
class RgcnFlops(FormulaFlops):
    """Counts of RGCN with DistMult; `GraphCounts.edges` are triples, each of which sends both ways.

    A learned vector for each node (features ``identity``) is looked up, not multiplied: entries of sparse
    features alone count.
    """

    options: models.RgcnOptions

    def parts(self, counts: GraphCounts) -> Parts:
        """See `FormulaFlops`: a block-diagonal product for each message; the head multiplies, then scores."""
        hidden, layers, messages = self.options.hidden, self.options.layers, 2 * counts.edges
        inputs = counts.first_layer(self.shape.width, hidden, executed=True)
        per_layer = 2 * counts.nodes * hidden * hidden
        per_layer += 2 * messages * hidden * (hidden // self.options.blocks)
        scored = self.shape.classes if counts.outputs is None else counts.outputs
        products, sums = inputs + layers * per_layer, layers * messages * hidden
        return Parts(inputs, products + counts.heads * hidden * (1 + 2 * scored), sums, sums)
