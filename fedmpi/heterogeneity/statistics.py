"""Sizes of a dataset (GCFL, Table 5)."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.datasets.features import feature_width, resolve
from fedmpi.datasets.raw import RawGraphs
from fedmpi.heterogeneity.structure import adjacency


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
