"""The least that a GIN pass must move between memory and processor, and the limit that follows."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.models.flops import GraphCounts
from fedmpi.models.options import GinOptions

_FLOAT_BYTES = 4
_INDEX_BYTES = 4


@dataclass(frozen=True)
class GinBytes:
    """Counted bytes of one GIN with `width` input features and `classes` outputs.

    Every operation (a product with the elementwise work before and after it, a sum over neighbours, a
    pooling) reads each of its operands once and writes its result once, in single precision; indices have 4
    bytes. What an implementation keeps in cache from one operation to the next lowers its real traffic below
    this; separate elementwise passes, layout copies and reads beyond the first raise it above.
    """

    options: GinOptions
    width: int
    classes: int

    def _products(self, counts: GraphCounts) -> list[tuple[int, int, int]]:
        """Return the products' shapes (rows, inner, columns) in the order of the forward pass."""
        hidden = self.options.hidden
        square = (counts.nodes, hidden, hidden)
        head = [(counts.graphs, hidden, hidden), (counts.graphs, hidden, self.classes)]
        return [(counts.nodes, self.width, hidden), *[square] * (2 * self.options.layers), *head]

    def _sums(self, counts: GraphCounts) -> int:
        """Return the bytes of all sums over neighbours and of the pooling, in one direction."""
        hidden, layers = self.options.hidden, self.options.layers
        features = layers * 2 * counts.nodes * hidden + (counts.nodes + counts.graphs) * hidden
        indices = layers * (counts.edges + counts.nodes) + counts.graphs
        return _FLOAT_BYTES * features + _INDEX_BYTES * indices

    def _norms(self, counts: GraphCounts, arrays: int) -> int:
        """Return the bytes of all normalisations, each reading and writing so many arrays of nodes."""
        layers = len(self.options.norms) * self.options.layers
        return _FLOAT_BYTES * layers * arrays * counts.nodes * self.options.hidden

    def forward(self, counts: GraphCounts) -> int:
        """Return the bytes of one forward pass."""
        products = sum(_operands(shape) for shape in self._products(counts))
        return products + self._sums(counts) + self._norms(counts, 2)

    def training(self, counts: GraphCounts) -> int:
        """Return the bytes of one forward and backward pass; the features need no gradient.

        Each product has two companions of the same three operands in the backward pass, for the weights and
        for the input; a normalisation reads its input and the gradient and writes one.
        """
        first, *rest = (_operands(shape) for shape in self._products(counts))
        return 2 * first + 3 * sum(rest) + 2 * self._sums(counts) + self._norms(counts, 5)


def _operands(shape: tuple[int, int, int]) -> int:
    rows, inner, columns = shape
    return _FLOAT_BYTES * (rows * inner + inner * columns + rows * columns)


def least_seconds(gflop: float, gigabytes: float, gflops: float, bandwidth: float) -> float:
    """Return the limit of the roofline (Williams, Waterman and Patterson 2009): computing or moving.

    Parameters
    ----------
    gflop, gigabytes : float
        Work and traffic.
    gflops, bandwidth : float
        What the machine does of them per second.
    """
    return max(gflop / gflops, gigabytes / bandwidth)
