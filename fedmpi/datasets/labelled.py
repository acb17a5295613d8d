"""Graphs of a file with their labels, without the graphs that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.labels import Labels
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.graphs.packed import Float, Topology, gather_ranges


def labelled(
    name: str,
    topology: Topology,
    labels: Labels,
    node_labels: Int | None = None,
    label_widths: tuple[int, ...] = (),
    node_attributes: Float | None = None,
    edge_attributes: Float | None = None,
) -> RawGraphs:
    """Return the graphs that have a label; the others are named in `RawGraphs.refused`.

    Parameters
    ----------
    labels : Labels
        Of all graphs.
    name, topology, node_labels, label_widths, node_attributes, edge_attributes
        See `RawGraphs`.
    """
    kept = np.flatnonzero(labels.present)
    if len(kept) < topology.num_graphs:
        nodes = topology.nodes_of(kept)
        edges = gather_ranges(topology.row_ptr[nodes], np.diff(topology.row_ptr)[nodes])
        topology = topology.take(kept)
        node_labels, node_attributes = _rows(node_labels, nodes), _rows(node_attributes, nodes)
        edge_attributes = _rows(edge_attributes, edges)
    return RawGraphs(
        name,
        topology,
        node_labels,
        label_widths,
        node_attributes,
        labels.taken(kept),
        labels.names,
        labels.kind,
        edge_attributes=edge_attributes,
        refused=tuple(f"graph {number + 1}: no label" for number in np.flatnonzero(~labels.present)),
    )


def _rows(table: npt.NDArray[Any] | None, rows: Int) -> npt.NDArray[Any] | None:
    return None if table is None else table[rows]
