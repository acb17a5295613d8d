"""What is worth a look in data of one's own, though nothing is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedmpi.datasets.networks import undirected
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology


def remarks(raw: RawGraphs) -> Iterator[str]:
    """Yield a line for each such thing."""
    if alone := one_way(raw.topology):
        yield f"{alone:,} of {raw.topology.num_edges:,} edges have no opposite: messages go one way"
    if raw.task == "classification" and raw.num_classes == 1:
        yield "there is one class only, so there is nothing to tell apart"


def one_way(topology: Topology) -> int:
    """Return how many edges have no edge in the other direction."""
    receivers = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))
    both = undirected(np.asarray(topology.columns), receivers, topology.graph_ptr)
    return both.num_edges - int(np.sum(topology.columns != receivers))
