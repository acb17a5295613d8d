"""Graph diffusion: a weighted second view of each graph (Klicpera, Weissenberger and Guennemann 2019).

The transition matrix T of A + w I is summed over walks of all lengths, ``S = sum_k theta_k T^k``:
personalised PageRank ``S = alpha (I - (1 - alpha) T)^-1`` or the heat kernel ``S = exp(t (T - I))``.
Small entries are dropped. The same as torch-geometric's GDC without its traps: a mean degree of
exactly the number of nodes (an IndexError there), graphs of one node, and edge attributes. It is also
not MVGRL's "heat", which exponentiates element by element.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from fedmpi.config.options import Options
from fedmpi.graphs.packed import GraphSet, Int, Topology, gather_ranges, pointers

Floats = npt.NDArray[np.float64]

_ENTRIES_AT_ONCE = 1 << 21
"""Entries of the dense matrices, about, that one thread works on at a time; bounds memory."""

_DECIMALS = 12
"""Entries are rounded so: those equal by symmetry differ in their last bits, and would be dropped apart."""


_LARGEST_PART = 256
"""Graphs encoded at a time without gradients; bounds memory."""


class DiffusionOptions(Options):
    """The diffused view of a graph."""

    kind: Literal["ppr", "heat"] = "ppr"
    """Personalised PageRank, or the heat kernel."""
    alpha: float = Field(0.2, ge=1e-4, le=1)
    """Teleport probability of "ppr": 0.2 as MVGRL (torch-geometric: 0.15)."""
    t: float = Field(5.0, gt=0, le=1e4)
    """Time of the heat kernel."""
    self_loops: float = Field(1.0, ge=0)
    """Weight w of the self-loops that are added first."""
    transition: Literal["sym", "col", "row"] = "sym"
    """"sym": D^-1/2 A D^-1/2; "col": what a node receives sums to 1; "row": what it sends does."""
    keep: Literal["threshold", "topk", "degree", "all"] = "threshold"
    """What of S stays: entries of at least `eps` ("threshold"), the `k` largest that a node receives
    ("topk"), the largest of the whole, `degree` per node on average ("degree"), or all."""
    eps: float = Field(1e-2, ge=0)
    """Bound of keep = "threshold"."""
    k: int = Field(8, ge=1)
    """Entries of a node with keep = "topk"."""
    degree: int = Field(64, ge=1)
    """Mean entries of a node with keep = "degree"."""
    scaling: Literal["none", "sym", "col", "row"] = "none"
    """Of what stays, so that it is a transition matrix again; "none" as MVGRL, others as `transition`."""

    @model_validator(mode="after")
    def _all_read(self) -> DiffusionOptions:
        for name, option, reader in _READ_BY:
            unread = getattr(self, option) != reader
            if unread and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f'{name} is read with {option} = "{reader}" only')
        return self


_READ_BY = (
    ("alpha", "kind", "ppr"),
    ("t", "kind", "heat"),
    ("eps", "keep", "threshold"),
    ("k", "keep", "topk"),
    ("degree", "keep", "degree"),
)
"""Options that one value of another option reads."""


@dataclass(frozen=True)
class WeightedTopology:
    """Structure of graphs whose edges have weights.

    Attributes
    ----------
    topology : Topology
        Of E directed edges.
    weights : float32 [E]
        Weight of each edge, in the order of ``topology.columns``.
    """

    topology: Topology
    weights: npt.NDArray[np.float32]

    def take(self, graphs: Int) -> WeightedTopology:
        """Return the given graphs (repeats allowed) packed anew."""
        nodes = self.topology.nodes_of(graphs)
        lengths = np.diff(self.topology.row_ptr)[nodes]
        edges = gather_ranges(np.asarray(self.topology.row_ptr[nodes], np.int64), lengths)
        return WeightedTopology(self.topology.take(graphs), np.asarray(self.weights)[edges])


@dataclass(frozen=True)
class ViewedGraphs:
    """A client's graphs and their diffused view, where the objective has one."""

    graphs: GraphSet
    diffused: WeightedTopology | None

    @property
    def plain(self) -> ViewedGraphs:
        """The same graphs without their view."""
        return ViewedGraphs(self.graphs, None)

    def take(self, numbers: Int) -> ViewedGraphs:
        """Return the given graphs, packed anew."""
        diffused = None if self.diffused is None else self.diffused.take(numbers)
        return ViewedGraphs(self.graphs.take(numbers), diffused)

    def parts(self) -> Iterator[ViewedGraphs]:
        """Yield all graphs, some at a time."""
        everything = np.arange(self.graphs.num_graphs)
        for cut in range(0, len(everything), _LARGEST_PART):
            yield self.take(everything[cut : cut + _LARGEST_PART])


def diffuse(topology: Topology, options: DiffusionOptions) -> WeightedTopology:
    """Return the diffused view of every graph; its graphs and nodes are those of `topology`.

    Each graph's matrix is computed by itself in double precision on one thread, so the result does
    not depend on the number of cores, which share out the graphs.
    """
    from threadpoolctl import threadpool_limits

    blocks = list(_blocks(np.diff(topology.graph_ptr)))
    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(lambda graphs: _sparse(_diffused(topology, graphs, options)), blocks))
    return _assembled(topology, blocks, parts)


def normalised(topology: Topology) -> WeightedTopology:
    """Return D^-1/2 (A + I) D^-1/2 of every graph, D the degrees of A + I: a GCN's matrix."""
    nodes = np.arange(topology.num_nodes, dtype=np.int64)
    degrees = np.diff(topology.row_ptr)
    row_ptr = topology.row_ptr + np.arange(topology.num_nodes + 1)
    columns = np.insert(topology.columns, topology.row_ptr[1:], nodes)
    scale = 1 / np.sqrt(degrees + 1.0)
    weights = np.repeat(scale, degrees + 1) * scale[columns]
    return WeightedTopology(Topology(topology.graph_ptr, row_ptr, columns), weights.astype(np.float32))


def _blocks(sizes: Int) -> Iterator[Int]:
    """Yield graph numbers of equal size, as many as are worked on at once."""
    for size in np.unique(sizes):
        graphs = np.flatnonzero(sizes == size)
        most = max(1, _ENTRIES_AT_ONCE // max(1, int(size) ** 2))
        yield from np.split(graphs, range(most, len(graphs), most))


def _diffused(topology: Topology, graphs: Int, options: DiffusionOptions) -> Floats:
    """Return the matrices of g graphs of n nodes after diffusion, sparsification and scaling, [g, n, n]."""
    walks = _transition(_dense(topology, graphs, options.self_loops), options.transition)
    identity = np.eye(walks.shape[1])
    if options.kind == "ppr":
        whole = options.alpha * np.linalg.inv(identity - (1 - options.alpha) * walks)
    else:
        from scipy.linalg import expm

        whole = expm(options.t * (walks - identity)) if walks.size else walks
    dense: Floats = np.round(whole, _DECIMALS).astype(np.float64)
    kept = np.where(_kept(dense, options), dense, 0.0)
    return kept if options.scaling == "none" else _transition(kept, options.scaling)


def _dense(topology: Topology, graphs: Int, self_loops: float) -> Floats:
    """Return the adjacency matrices [g, n, n] of g graphs of n nodes; entry (i, j): i sends to j."""
    part = topology.take(graphs)
    size = part.num_nodes // len(graphs)
    receivers = np.repeat(np.arange(part.num_nodes), np.diff(part.row_ptr))
    matrices = np.zeros((len(graphs), size, size))
    if size:
        matrices[receivers // size, part.columns % size, receivers % size] = 1.0
    matrices += self_loops * np.eye(size)
    return matrices


def _transition(matrices: Floats, kind: str) -> Floats:
    """Return transition matrices; a node that nothing leads to or from keeps zeros."""
    columns, rows = matrices.sum(axis=1, keepdims=True), matrices.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        if kind == "col":
            return matrices * _finite(1 / columns)
        if kind == "row":
            return matrices * _finite(1 / rows)
        scale = _finite(1 / np.sqrt(columns))
    return scale.transpose(0, 2, 1) * matrices * scale


def _finite(values: Floats) -> Floats:
    return np.where(np.isinf(values), 0.0, values)


def _kept(matrices: Floats, options: DiffusionOptions) -> npt.NDArray[np.bool_]:
    """Return which entries stay, bool [g, n, n]."""
    size = matrices.shape[1]
    if options.keep == "all" or (options.keep == "degree" and options.degree >= size):
        return np.ones(matrices.shape, bool)
    if options.keep == "threshold":
        return matrices >= options.eps
    if options.keep == "degree":  # GDC's "avg_degree": entries above the first that is too many
        flat = np.sort(matrices.reshape(len(matrices), -1), axis=1)[:, ::-1]
        return matrices >= flat[:, options.degree * size - 1, None, None]
    order = np.argsort(-matrices, axis=1, kind="stable")[:, : options.k]
    kept = np.zeros(matrices.shape, bool)
    np.put_along_axis(kept, order, True, axis=1)
    return kept


def _sparse(matrices: Floats) -> tuple[Int, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return, by receiving node, entries [g n], senders within the graph, and weights of dense matrices."""
    received = matrices.transpose(0, 2, 1)
    places = np.nonzero(received)
    lengths = np.count_nonzero(received, axis=2).reshape(-1)
    return lengths.astype(np.int64), places[2].astype(np.int32), received[places].astype(np.float32)


def _assembled(topology: Topology, blocks: list[Int], parts: list[Any]) -> WeightedTopology:
    """Put the graphs of all blocks into the order of the dataset."""
    lengths = np.zeros(topology.num_nodes, np.int64)
    for graphs, (counts, _, _) in zip(blocks, parts, strict=True):
        lengths[topology.nodes_of(graphs)] = counts
    row_ptr = pointers(lengths)
    columns = np.empty(row_ptr[-1], np.int64)
    weights = np.empty(row_ptr[-1], np.float32)
    for graphs, (counts, local, values) in zip(blocks, parts, strict=True):
        nodes = topology.nodes_of(graphs)
        places = gather_ranges(row_ptr[nodes], counts)
        first = np.repeat(np.asarray(topology.graph_ptr)[graphs], np.diff(topology.graph_ptr)[graphs])
        columns[places] = local + np.repeat(first, counts)
        weights[places] = values
    return WeightedTopology(Topology(np.asarray(topology.graph_ptr), row_ptr, columns), weights)
