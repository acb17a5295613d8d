"""FLOPs of FedGraphNN's molecule models: the true count, and the one that the paper printed."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.models import options as models
from fedmpi.models.counts import GraphCounts
from fedmpi.models.flops import FormulaFlops, Parts

_FANOUT = 2
"""Neighbours that GraphSAGE draws of each node in each layer."""


@dataclass(frozen=True)
class FedGraphNNFlops(FormulaFlops):
    """True counts of one model of one shape, conventions as in `fedmpi.models.flops`.

    GCN propagates the features, not the wider first layer. Sums over neighbours have an entry per edge
    and self loop; GraphSAGE's have one per neighbour drawn.
    """

    options: models.FedGraphNNOptions

    def _layers(self, counts: GraphCounts) -> tuple[int, int, int, int]:
        """Return the products of the first layer and of the second, and the sums forward and backward."""
        options, nodes = self.options, counts.nodes
        width, hidden, node = self.shape.width, options.hidden, options.node
        entries = counts.edges + nodes
        if isinstance(options, models.FedGraphNNGatOptions):
            wide = options.heads * hidden
            scores = 4 * nodes * (wide + node)
            sums = entries * (wide + node) + scores
            return 2 * nodes * width * wide, 2 * nodes * wide * node, sums, sums
        if isinstance(options, models.FedGraphNNSageOptions):
            drawn = nodes * (1 + _FANOUT)
            of_states = _FANOUT * nodes * hidden
            sums = _FANOUT * drawn * width + of_states
            return 2 * drawn * 2 * width * hidden, 2 * nodes * 2 * hidden * node, sums, of_states
        sums = entries * (width + node)
        return 2 * nodes * width * hidden, 2 * nodes * hidden * node, sums, entries * node

    def _readout(self, counts: GraphCounts) -> int:
        options = self.options
        per_node = (self.shape.width + options.node) * options.readout + options.readout * options.graph
        return 2 * counts.nodes * per_node + 2 * counts.graphs * options.graph * self.shape.classes

    def parts(self, counts: GraphCounts) -> Parts:
        """See `FormulaFlops`; the graph's mean is taken before the last Linear."""
        first, second, sums, sums_back = self._layers(counts)
        products = first + second + self._readout(counts)
        return Parts(first, products, sums + counts.nodes * self.options.graph, sums_back)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`.

        Torch's products are the true count; GCN's first sums count where the batch has not kept them.
        """
        total = self.of(counts, training).total
        if propagated and isinstance(self.options, models.FedGraphNNGcnOptions):
            total -= (counts.edges + counts.nodes) * self.shape.width
        return total


def published_flops(options: models.FedGraphNNOptions, shape: models.Shape, nodes: int) -> int:
    """Return the forward FLOPs of a molecule of `nodes` nodes as Table 6 counts them.

    Twice what a counter of that time sees of torch's modules: Linears with their bias once, ReLU and
    LeakyReLU by element; products with bare parameters (all of GCN's and GAT's layers) and sums over
    neighbours count nothing. 26 of the table's 30 numbers come out; `PUBLISHED_SLIPS` names the others.
    """
    width, hidden, node = shape.width, options.hidden, options.node
    read, graph, classes = options.readout, options.graph, shape.classes
    head = nodes * ((width + node) * read + read * graph + graph * classes)
    head += (read + graph + classes) + nodes * (read + graph)
    match options:
        case models.FedGraphNNGcnOptions():
            return 2 * head
        case models.FedGraphNNGatOptions():
            return 2 * (head + (options.heads + 1) * nodes * nodes)
        case _:
            first, second = 6 * nodes * width * hidden + 3 * nodes * hidden, 2 * nodes * hidden * node
            return 2 * (head + first + second + nodes * node)


PUBLISHED_SLIPS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("hERG", "gcn"): ("516.6K", "516.2K", "typing slip"),
    ("SIDER", "gat"): ("703.4K", "703.8K", "digits exchanged"),
    ("FreeSolv", "gat"): ("142.5K", "143.0K", "less than GCN's 142.6K, which it contains"),
    ("Lipophilicity", "sage"): ("1.5M", "15.0M", "decimal point"),
}
"""Table 6's numbers that the formula does not give: printed, computed, what went wrong."""


def published_node_flops(name: str, shape: models.Shape, hidden: int, nodes: int) -> int:
    """Return the forward FLOPs of Table 8: two Linears, and GraphSAGE's two of its convolution.

    Parameters
    ----------
    name : str
        ``gcn`` or ``sage``.
    nodes : int
        Of an average ego-network: 80, 19, 84 and 59 for CORA, Citeseer, DBLP and PubMed.
    """
    count = nodes * (shape.width * hidden + hidden * shape.classes) + hidden + shape.classes
    return 2 * (count + (2 * nodes * hidden * hidden + hidden if name == "sage" else 0))
