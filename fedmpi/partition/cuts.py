"""Cuts of one large graph into the parts of clients: by communities, or balanced with few edges between."""

from __future__ import annotations

import heapq
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput
from fedmpi.seeds import Purpose, key, permutation

if TYPE_CHECKING:
    from fedmpi.graphs.packed import Topology
    from fedmpi.partition.options import Louvain, Metis

Int = npt.NDArray[np.int64]


def louvain(options: Louvain, topology: Topology) -> list[Int]:
    """Return the nodes of each client: communities (Blondel et al. 2008), joined or halved.

    Communities are taken from the largest on, each by the client with the fewest nodes, as OpenFGL does
    (Li et al. 2024). Where there are fewer communities than clients, the largest is halved at random until
    there are enough.
    """
    edges = edges_of(topology).astype(np.int32).tobytes()
    found = _communities(edges, topology.num_nodes, options.resolution, options.seed)
    return joined([*found], options.clients, options.seed)


@lru_cache(maxsize=12)
def _communities(edges: bytes, nodes: int, resolution: float, seed: int) -> tuple[Int, ...]:
    """Return the communities of a graph, of int32 edges [E, 2]; kept for the next cases of a sweep."""
    from networkx import Graph
    from networkx.algorithms.community import louvain_communities

    graph = Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(np.frombuffer(edges, np.int32).reshape(-1, 2).tolist())
    found = louvain_communities(graph, resolution=resolution, seed=seed)
    return tuple(np.array(sorted(each), np.int64) for each in found)


def metis(options: Metis, topology: Topology) -> list[Int]:
    """Return the nodes of each client: equal parts with few edges between (Karypis and Kumar 1998).

    Raises
    ------
    BadInput
        pymetis is not installed.
    """
    try:
        import pymetis
    except ImportError as error:
        raise BadInput(
            "partition 'metis' needs the extra nodes: pip install 'fedmpi[nodes]', or use 'louvain'"
        ) from error
    if options.clients == 1:
        return [np.arange(topology.num_nodes)]
    settings = pymetis.Options(seed=options.seed)
    graph = pymetis.CSRAdjacency(topology.row_ptr, np.asarray(topology.columns))
    _, part_of = pymetis.part_graph(options.clients, graph, options=settings)
    return [np.flatnonzero(np.asarray(part_of) == client) for client in range(options.clients)]


def edges_of(topology: Topology) -> Int:
    """Return each undirected edge once, int64 [E, 2]."""
    rows = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))
    columns = np.asarray(topology.columns)
    once = rows < columns
    return np.stack([rows[once], columns[once]], axis=1)


def joined(groups: list[Int], clients: int, seed: int) -> list[Int]:
    """Return so many groups of about one size: groups joined, or the largest halved where there are too few.

    Parameters
    ----------
    groups : list of int64 arrays
    clients : int
    seed : int
        Of the order in which a group is halved.
    """
    groups = sorted(groups, key=lambda group: (-len(group), group[0]))
    while len(groups) < clients:
        largest = groups.pop(0)
        if len(largest) < 2:
            raise BadInput(f"{clients} clients cannot share so few nodes: use fewer clients")
        order = permutation(key(seed, Purpose.PARTITION, len(groups)), len(largest))
        groups += [np.sort(half) for half in np.array_split(largest[order], 2)]
        groups.sort(key=lambda group: (-len(group), group[0]))
    held: list[list[Int]] = [[] for _ in range(clients)]
    smallest = [(0, client) for client in range(clients)]
    for group in groups:
        size, client = heapq.heappop(smallest)
        held[client].append(group)
        heapq.heappush(smallest, (size + len(group), client))
    return [np.sort(np.concatenate(parts)) for parts in held]
