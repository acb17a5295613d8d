"""The subgraph of some nodes."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.packed import Int, Topology, gather_ranges, pointers


def induced(topology: Topology, nodes: Int) -> tuple[Topology, Int]:
    """Return the graph of some nodes and the edges between them, and these edges' places among all.

    Parameters
    ----------
    topology : Topology
    nodes : int64 [n]
        Distinct; node ``i`` of the result is ``nodes[i]``.
    """
    place = np.full(topology.num_nodes, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    degrees = np.diff(topology.row_ptr)[nodes]
    edges = gather_ranges(topology.row_ptr[nodes], degrees)
    columns = place[np.asarray(topology.columns)[edges]]
    inside = columns >= 0
    row = np.repeat(np.arange(len(nodes)), degrees)[inside]
    order = np.lexsort((columns[inside], row))
    row_ptr = pointers(np.bincount(row, minlength=len(nodes)))
    return Topology(np.array([0, len(nodes)]), row_ptr, columns[inside][order]), edges[inside][order]
