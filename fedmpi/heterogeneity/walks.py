"""Anonymous walk embeddings (Ivanov and Burnaev 2018, "Anonymous Walk Embeddings", section 3).

A walk of length l has l steps and l + 1 nodes. Its anonymous pattern replaces each node by the
order of its first visit: nodes 7 4 7 9 give 0 1 0 2.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import Int, Topology, pointers
from fedmpi.heterogeneity.streams import Draw, stream
from fedmpi.heterogeneity.structure import undirected

Float = npt.NDArray[np.float64]

_WALKS_AT_ONCE = 1 << 20


def patterns(length: int) -> Int:
    """Return all patterns of walks of `length` steps, int64 [P, length + 1], in lexical order.

    P is the Bell number of `length`: 15 at 4, 52 at 5.
    """
    found: list[tuple[int, ...]] = [(0,)]
    for _ in range(length):
        found = [(*walk, node) for walk in found for node in range(max(walk) + 2) if node != walk[-1]]
    return np.array(found, np.int64)


def num_walks(num_patterns: int, epsilon: float = 0.1, delta: float = 0.01) -> int:
    """Return how many walks keep the L1 error below `epsilon` with probability 1 - `delta`.

    Ivanov and Burnaev, section 3.1: ``m = ceil(2 / epsilon^2 (ln(2^P - 2) - ln delta))``; P at least 2.
    """
    return math.ceil(2 / epsilon**2 * (math.log(2**num_patterns - 2) - math.log(delta)))


def embed(topology: Topology, length: int = 4, seed: int = 0, walks: int | None = None) -> Float:
    """Return the distribution of each graph's sampled walks over the patterns.

    A walk starts at a node drawn uniformly among those with an edge, and goes on to a neighbour
    drawn uniformly. Each graph has a stream of its own, so that a row depends on the options, its
    graph and its number only.

    Parameters
    ----------
    topology : Topology
        G graphs, taken as undirected.
    length : int
        Steps of a walk, at least 2.
    seed : int
        Seed of the walks.
    walks : int, optional
        Walks per graph; by default `num_walks` of the number of patterns P.

    Returns
    -------
    float64 [G, P]
        Rows add up to 1; a row of NaN for a graph without edges.
    """
    graphs = undirected(topology)
    table = patterns(length)
    lookup = _lookup(table)
    walks = walks or num_walks(len(table))
    pool, pool_ptr = _starting_nodes(graphs)
    walkable = np.flatnonzero(np.diff(pool_ptr))
    shares = np.full((graphs.num_graphs, len(table)), np.nan)
    at_once = max(1, _WALKS_AT_ONCE // walks)
    for first in range(0, len(walkable), at_once):
        chosen = walkable[first : first + at_once]
        chance = np.stack([_chances(seed, length, int(graph), walks) for graph in chosen], axis=1)
        where = pool_ptr[chosen, None] + (chance[0] * np.diff(pool_ptr)[chosen, None]).astype(np.int64)
        seen = lookup[_codes(_visited(graphs, pool[where], chance[1:]))]
        rows = np.arange(len(chosen))[:, None] * len(table) + seen
        counts = np.bincount(rows.ravel(), minlength=len(chosen) * len(table))
        shares[chosen] = counts.reshape(len(chosen), -1) / walks
    return shares


def _chances(seed: int, length: int, graph: int, walks: int) -> Float:
    return stream(seed, Draw.WALKS, length, graph).random((length + 1, walks))


def _starting_nodes(graphs: Topology) -> tuple[Int, Int]:
    """Return the nodes with an edge, and the pointers of each graph's among them."""
    linked = np.diff(graphs.row_ptr) > 0
    before = pointers(linked)
    return np.flatnonzero(linked), before[graphs.graph_ptr]


def _visited(graphs: Topology, start: Int, chance: Float) -> Int:
    """Return the nodes of walks, int64 [length + 1, ...], from their first nodes and a draw per step."""
    degrees = np.diff(graphs.row_ptr)
    nodes = [start]
    for draw in chance:
        here = nodes[-1]
        nodes.append(graphs.columns[graphs.row_ptr[here] + (draw * degrees[here]).astype(np.int64)])
    return np.stack(nodes)


def _codes(nodes: Int) -> Int:
    """Return each walk's pattern as one number: its labels as digits of base length + 1."""
    labels = [np.zeros(nodes.shape[1:], np.int64)]
    known = np.ones(nodes.shape[1:], np.int64)
    for step in range(1, len(nodes)):
        label = known.copy()
        for earlier in range(step - 1):  # a walk never stays, so the node before is another
            again = nodes[step] == nodes[earlier]
            label[again] = labels[earlier][again]
        known += label == known
        labels.append(label)
    codes = np.zeros(nodes.shape[1:], np.int64)
    for label in labels:
        codes = codes * len(nodes) + label
    return codes


def _lookup(table: Int) -> Int:
    """Return the row of `table` that each code stands for."""
    base = table.shape[1]
    codes = table @ base ** np.arange(base)[::-1]
    rows = np.zeros(base**base, np.int64)
    rows[codes] = np.arange(len(table))
    return rows
