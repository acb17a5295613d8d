"""Properties that real graphs share, beside random graphs of their size (GCFL, Table 1); sizes (Table 5)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats
from scipy.sparse import csgraph

from fedmpi.datasets.features import feature_width, resolve
from fedmpi.datasets.networks import undirected
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology
from fedmpi.heterogeneity.pairs import triangular
from fedmpi.heterogeneity.streams import Draw, stream
from fedmpi.heterogeneity.structure import adjacency, graph_of_node, mean_by_graph

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Properties:
    """Four figures of each of G graphs, float64 [G]; NaN where one is not defined.

    Attributes
    ----------
    kurtosis
        Pearson's kurtosis of the graph's node degrees (normal = 3); NaN where all are equal.
    path_length
        Mean shortest path over the pairs of the largest component; NaN if that is one node.
    largest_component
        Share of nodes in the largest component, %.
    clustering
        Mean over nodes of the local clustering coefficient, 0 below degree 2.
    """

    kurtosis: Float
    path_length: Float
    largest_component: Float
    clustering: Float


PROPERTIES: tuple[str, ...] = tuple(field.name for field in fields(Properties))


@dataclass(frozen=True)
class Comparison:
    """One property of real graphs against their random counterparts.

    Attributes
    ----------
    dataset, property : str
        What is compared.
    real, random : float
        Means over the graphs where the property is defined (see `compare`).
    pairs : int
        Graphs where it is defined for both.
    greater, less, two_sided : float
        p-values of the paired Wilcoxon test: a small `greater` says that real graphs have the
        larger values, a small `less` the smaller.
    """

    dataset: str
    property: str
    real: float
    random: float
    pairs: int
    greater: float
    less: float
    two_sided: float


def measure(topology: Topology) -> Properties:
    """Return the properties of each graph, taken as undirected."""
    matrix = adjacency(topology)
    path_length, share = _largest_components(matrix, topology)
    return Properties(
        kurtosis=_kurtosis(np.diff(matrix.indptr).astype(np.float64), topology),
        path_length=path_length,
        largest_component=share,
        clustering=mean_by_graph(_local_clustering(matrix), topology),
    )


def compare(raw: RawGraphs, seed: int, as_published: bool = False) -> tuple[Comparison, ...]:
    """Return each property of a dataset beside that of seeded Erdos-Renyi graphs.

    Parameters
    ----------
    raw : RawGraphs
        The dataset; the random graphs are G(n, m) with each graph's own n and m.
    seed : int
        Seed of the random graphs.
    as_published : bool
        Choose what fits Table 1 best, which the paper does not say: G(n, p) of equal density, and
        kurtosis 0 where all degrees are equal, instead of leaving that graph out.
    """
    real = measure(raw.topology)
    random = measure(random_counterparts(raw.topology, seed, exact_edges=not as_published))
    if as_published:
        real, random = (replace(each, kurtosis=np.nan_to_num(each.kurtosis)) for each in (real, random))
    return tuple(_compare(raw.name, name, getattr(real, name), getattr(random, name)) for name in PROPERTIES)


def random_counterparts(topology: Topology, seed: int, exact_edges: bool = True) -> Topology:
    """Return for each graph a random one of its size.

    Graph ``g`` of the result depends on the seed, ``g`` and its numbers of nodes and edges only.

    Parameters
    ----------
    topology : Topology
        Graphs, taken as undirected.
    seed : int
        Seed of the draws.
    exact_edges : bool
        G(n, m): uniform among the graphs with the same numbers of nodes and edges. Else G(n, p):
        each pair is linked with the same chance, so that the number of edges is equal on average.
    """
    degrees = np.diff(adjacency(topology).indptr)
    sizes = np.diff(topology.graph_ptr)
    lower, upper = [], []
    for graph, (start, size) in enumerate(zip(topology.graph_ptr[:-1], sizes, strict=True)):
        edges = int(degrees[start : start + size].sum()) // 2
        rng = stream(seed, Draw.RANDOM_GRAPHS, graph)
        possible = int(size) * (int(size) - 1) // 2
        if not exact_edges and possible:
            edges = int(rng.binomial(possible, edges / possible))
        low, high = triangular(rng.choice(possible, edges, replace=False))
        lower.append(start + low)
        upper.append(start + high)
    return undirected(np.concatenate(lower), np.concatenate(upper), np.asarray(topology.graph_ptr))


def _compare(dataset: str, name: str, real: Float, random: Float) -> Comparison:
    both = ~np.isnan(real) & ~np.isnan(random)
    p_values = (_wilcoxon(real[both] - random[both], side) for side in ("greater", "less", "two-sided"))
    return Comparison(dataset, name, _mean(real), _mean(random), int(both.sum()), *p_values)


def _mean(values: Float) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _wilcoxon(differences: Float, alternative: str) -> float:
    """Return the p-value; 1 where no graph differs, of which the test says nothing."""
    if not np.any(differences):
        return 1.0
    return float(stats.wilcoxon(differences, alternative=alternative).pvalue)


def _kurtosis(degrees: Float, topology: Topology) -> Float:
    centred = degrees - mean_by_graph(degrees, topology)[graph_of_node(topology)]
    second, fourth = (mean_by_graph(centred**power, topology) for power in (2, 4))
    kurtosis: Float = np.divide(fourth, second**2, out=np.full(len(second), np.nan), where=second > 0)
    return kurtosis


def _local_clustering(matrix: sparse.csr_array) -> Float:
    """Return twice the triangles of each node over ``d (d - 1)``."""
    closed = (matrix @ matrix).multiply(matrix).sum(axis=1).astype(np.float64)
    degrees = np.diff(matrix.indptr).astype(np.float64)
    pairs = degrees * (degrees - 1)
    clustering: Float = np.divide(closed, pairs, out=np.zeros(len(degrees)), where=degrees > 1)
    return clustering


def _largest_components(matrix: sparse.csr_array, topology: Topology) -> tuple[Float, Float]:
    """Return mean path length and share (%) of each graph's largest component, the first of equal ones."""
    num_components, component = csgraph.connected_components(matrix, directed=False)
    sizes = np.bincount(component, minlength=num_components)
    path_length = np.full(topology.num_graphs, np.nan)
    share = np.full(topology.num_graphs, np.nan)
    for graph, (start, end) in enumerate(zip(topology.graph_ptr[:-1], topology.graph_ptr[1:], strict=True)):
        if end == start:
            continue
        here = component[start:end]
        largest = here[np.argmax(sizes[here])]
        share[graph] = 100 * sizes[largest] / (end - start)
        if sizes[largest] > 1:
            path_length[graph] = _mean_path(_block(matrix, start, end), np.flatnonzero(here == largest))
    return path_length, share


def _block(matrix: sparse.csr_array, start: int, end: int) -> sparse.csr_array:
    first, last = matrix.indptr[start], matrix.indptr[end]
    columns, row_ptr = matrix.indices[first:last] - start, matrix.indptr[start : end + 1] - first
    return sparse.csr_array((matrix.data[first:last], columns, row_ptr), shape=(end - start, end - start))


def _mean_path(block: sparse.csr_array, nodes: npt.NDArray[np.int64]) -> float:
    steps = csgraph.dijkstra(block, directed=False, indices=nodes, unweighted=True)[:, nodes]
    return float(steps.sum() / (len(nodes) * (len(nodes) - 1)))


@dataclass(frozen=True)
class Statistics:
    """Sizes of one dataset.

    Attributes
    ----------
    name : str
        The dataset.
    graphs, classes : int
        Their numbers.
    nodes, edges : float
        Average numbers per graph; an undirected edge counts once.
    features : str
        What "original" features mean here: labels, attributes or degree.
    feature_width : int
        Columns of these features.
    """

    name: str
    graphs: int
    nodes: float
    edges: float
    classes: int
    features: str
    feature_width: int


def statistics(raw: RawGraphs) -> Statistics:
    """Return the sizes of a dataset, counted from its graphs."""
    topology = raw.topology
    edges = adjacency(topology).nnz // 2
    return Statistics(
        name=raw.name,
        graphs=raw.num_graphs,
        nodes=topology.num_nodes / raw.num_graphs,
        edges=edges / raw.num_graphs,
        classes=raw.num_classes,
        features=resolve(raw, "original"),
        feature_width=feature_width(raw, "original"),
    )
