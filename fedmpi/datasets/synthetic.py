"""Generated domains: small graphs of several structural families, for runs that need no files.

Each domain asks one structural question that its classes answer differently, and has a
node-label distribution of its own. Graph ``g`` of domain ``d`` is a function of (seed, d, g)
alone. A share of the graphs carries a wrong class, so that no model reaches 100 %.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fedmpi.datasets.networks import undirected
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import SYNTHETIC
from fedmpi.seeds import Purpose, generator, key

_MOST_GRAPHS = 5_000_000
_WRONG_CLASS = 0.05
_ODD_ONES = 0.2
_DOMAIN_STREAM = -1  # in place of a graph number: what all graphs of a domain share

Rng = np.random.Generator
Edges = list[tuple[int, int]]
Draft = tuple[Edges, Int]
"""A graph: undirected edges, and per node a role (0 or 1) that its label leans to."""


class SyntheticOptions(BaseModel):
    """Size of the generated domains."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    domains: int = Field(default=6, ge=1, le=100_000)
    """Number of domains; domain d is of family d mod 6."""
    graphs: int = Field(default=120, ge=10, le=1_000_000)
    """Graphs of each domain."""
    nodes: tuple[int, int] = (12, 24)
    """Smallest and largest number of nodes of a graph, within 8 to 1,000."""
    classes: int = Field(default=2, ge=2, le=5)
    """Number of classes; graph g is of class g mod `classes` before some are changed."""
    seed: int = Field(default=0, ge=0)
    """Of the data, apart from the run's seed and the split's."""

    @field_validator("nodes")
    @classmethod
    def _ordered(cls, nodes: tuple[int, int]) -> tuple[int, int]:
        if not 8 <= nodes[0] <= nodes[1] <= 1000:
            raise ValueError("must be smallest and largest number of nodes, within 8 to 1000")
        return nodes

    @model_validator(mode="after")
    def _fits_memory(self) -> SyntheticOptions:
        if self.domains * self.graphs > _MOST_GRAPHS:
            raise ValueError(f"domains x graphs must be at most {_MOST_GRAPHS:,}")
        return self


def _coins(num_nodes: int, rng: Rng) -> Int:
    return rng.integers(0, 2, num_nodes)


def _cliques(nx: Any, num_nodes: int, strength: float, rng: Rng) -> Draft:
    """Erdos-Renyi graph; the stronger, the more planted cliques of four nodes."""
    base: Edges = list(nx.gnp_random_graph(num_nodes, 2.8 / num_nodes, seed=rng).edges)
    for _ in range(round(strength * num_nodes / 9)):
        four = rng.choice(num_nodes, 4, replace=False).tolist()
        base += [(first, second) for first in four for second in four if first < second]
    return base, _coins(num_nodes, rng)


def _hubs(nx: Any, num_nodes: int, strength: float, rng: Rng) -> Draft:
    """Watts-Strogatz graph (even degrees) for low strength, denser Barabasi-Albert graph (hubs) for high."""
    if rng.random() < strength:
        graph = nx.barabasi_albert_graph(num_nodes, 3, seed=rng)
    else:
        graph = nx.watts_strogatz_graph(num_nodes, 4, 0.3, seed=rng)
    return list(graph.edges), _coins(num_nodes, rng)


def _cycles(nx: Any, num_nodes: int, strength: float, rng: Rng) -> Draft:
    """Random tree; the stronger, the more edges that close cycles."""
    edges: Edges = list(nx.random_labeled_tree(num_nodes, seed=rng).edges)
    for _ in range(round(strength * num_nodes / 5) + int(rng.integers(0, 3))):
        first, second = rng.choice(num_nodes, 2, replace=False).tolist()
        edges.append((first, second))
    return edges, _coins(num_nodes, rng)


def _blocks(nx: Any, num_nodes: int, degree: float, within: float, rng: Rng) -> Draft:
    """Stochastic block model of two halves: mean degree, and the share of edges inside the halves."""
    left = num_nodes // 2
    inside, across = 2 * degree * within / num_nodes, 2 * degree * (1 - within) / num_nodes
    chances = [[inside, across], [across, inside]]
    graph = nx.stochastic_block_model([left, num_nodes - left], chances, seed=rng)
    return list(graph.edges), (np.arange(num_nodes) >= left).astype(np.int64)


def _communities(nx: Any, num_nodes: int, strength: float, rng: Rng) -> Draft:
    """One community for low strength, two for high."""
    return _blocks(nx, num_nodes, 3.0 + strength, 0.5 + 0.45 * strength, rng)


def _opposites(nx: Any, num_nodes: int, strength: float, rng: Rng) -> Draft:
    """Edges anywhere for low strength, mostly between two opposite sides for high."""
    return _blocks(nx, num_nodes, 4.0 - strength, 0.5 - 0.45 * strength, rng)


def _lattice(nx: Any, num_nodes: int, strength: float, rng: Rng) -> Draft:
    """Newman-Watts-Strogatz graph: a ring lattice, and the stronger, the more shortcuts."""
    graph = nx.newman_watts_strogatz_graph(num_nodes, 4, 0.1 + 0.3 * strength, seed=rng)
    return list(graph.edges), _coins(num_nodes, rng)


_FAMILIES: tuple[Callable[[Any, int, float, Rng], Draft], ...] = (
    *(_cliques, _hubs, _cycles, _communities, _lattice, _opposites),
)
"""Each is called with networkx, which takes long to import."""


def generate(options: SyntheticOptions, domain: int) -> RawGraphs:
    """Return the graphs of one domain, named ``synthetic-<domain>``.

    Parameters
    ----------
    options : SyntheticOptions
        Sizes and seed.
    domain : int
        0 to ``options.domains - 1``.

    Returns
    -------
    RawGraphs
        Undirected graphs with one column of node labels, ``4 + domain mod 5`` kinds.
    """
    import networkx as nx

    shared = generator(key(options.seed, Purpose.DATA, domain, _DOMAIN_STREAM))
    num_kinds = num_labels(domain)
    shares = np.cumsum(_kind_shares(num_kinds, shared), axis=1)
    pairs, kinds, graph_ptr, labels = [], [], [0], np.zeros(options.graphs, np.int64)
    for graph in range(options.graphs):
        rng = generator(key(options.seed, Purpose.DATA, domain, graph))
        structure = graph % options.classes
        num_nodes = int(rng.integers(options.nodes[0], options.nodes[1] + 1))
        family = _FAMILIES[domain % len(_FAMILIES)]
        edges, roles = family(nx, num_nodes, structure / (options.classes - 1), rng)
        pairs.append(np.array(edges, np.int64).reshape(-1, 2) + graph_ptr[-1])
        passed = (shares[roles] < rng.random((num_nodes, 1))).sum(axis=1)
        kinds.append(np.minimum(passed, num_kinds - 1))
        labels[graph] = _told(structure, options.classes, rng)
        graph_ptr.append(graph_ptr[-1] + num_nodes)
    first, second = np.concatenate(pairs).T
    topology = undirected(first, second, np.array(graph_ptr))
    names = tuple(str(name) for name in range(options.classes))
    node_labels = np.concatenate(kinds)[:, None]
    return RawGraphs(f"{SYNTHETIC}-{domain}", topology, node_labels, (num_kinds,), None, labels, names)


def num_labels(domain: int) -> int:
    """Return how many kinds of node labels a domain has."""
    return 4 + domain % 5


def _kind_shares(num_kinds: int, rng: Rng) -> npt.NDArray[np.float64]:
    """Return the share of each node-label kind for each role, float64 [2, num_kinds].

    A role leans to the even or the odd kinds, with a Dirichlet draw of the domain inside these.
    """
    shares = rng.dirichlet(np.ones(num_kinds), size=2)
    shares[0, 1::2] *= _ODD_ONES
    shares[1, 0::2] *= _ODD_ONES
    normed: npt.NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return normed


def _told(structure: int, num_classes: int, rng: Rng) -> int:
    """Return the class a graph carries: the one of its structure, or now and then another."""
    if rng.random() >= _WRONG_CLASS:
        return structure
    return int((structure + rng.integers(1, num_classes)) % num_classes)
