"""Graphs of networkx as those of torch-geometric."""

from __future__ import annotations

from typing import Any

import networkx
from torch_geometric.utils import from_networkx

from fedmpi.errors import BadInput


def as_data(graph: Any) -> Any:
    """Return a graph of networkx as a `Data`, anything else as it is.

    Raises
    ------
    BadInput
        Its nodes, or its edges, do not all have the same attributes.
    """
    if not isinstance(graph, networkx.Graph):
        return graph
    try:
        converted = from_networkx(graph)
    except Exception as error:
        raise BadInput(f"data: {graph} cannot be read: {error}") from error
    converted.num_nodes = len(graph)
    return converted
