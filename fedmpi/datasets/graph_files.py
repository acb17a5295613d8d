"""Graphs of one's own, made with torch-geometric: a list of `Data`, or one whose nodes have labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import labels as own_labels
from fedmpi.datasets.graph_items import Item, structure
from fedmpi.datasets.inert_torch import Saved, saved
from fedmpi.datasets.labels import Labels, numbered
from fedmpi.datasets.networks import csr_of
from fedmpi.datasets.own import PARTS
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Float, SparseRows
from fedmpi.visible import visible

Array = npt.NDArray[Any]

MASKS = ("train_mask", "val_mask", "test_mask")
"""In the order of `RawGraphs.parts`."""

_DENSE = 0.1
"""Share of the features that are not 0, above which these are not kept sparse; of Cora's it is 0.013."""

_STRUCTURE = ("x", "edge_index", "edge_attr", "num_nodes")
_OF_GRAPHS = (*_STRUCTURE, "y", "client", "split")
_OF_NODES = (*_STRUCTURE, "y", "client", *MASKS)


def graph_labels(path: Path, task: str) -> Labels:
    """Return the labels of a list of graphs; see `read_graphs`."""
    with saved(path) as file:
        return _labels(_items(file, path), task, path)


def node_labels(path: Path, task: str) -> Labels:
    """Return the labels of a graph's nodes; see `read_network`."""
    with saved(path) as file:
        return _labels_of_nodes(_only(file, path), task)


def read_graphs(path: Path, task: str, name: str) -> RawGraphs:
    """Read a list of graphs.

    Edges keep their directions; self-loops are removed, and so are duplicates, whose attributes are added up.
    A graph without a label is left out.

    Parameters
    ----------
    path : Path
        A list of `Data` with ``edge_index``, ``y``, and ``x`` or ``num_nodes``; ``edge_attr``, ``client`` and
        ``split`` are read where they are there, other fields are not.
    task : str
        A key of `fedmpi.datasets.labels.KINDS`, or empty.
    name : str
        Of the dataset.

    Raises
    ------
    BadInput
        The file is damaged, or not consistent.
    """
    with saved(path) as file:
        items = _items(file, path)
        labels = _labels(items, task, path)
        kept = np.flatnonzero(labels.present)
        refused = [f"graph {number}: no label" for number in np.flatnonzero(~labels.present)]
        features, topology, edges = structure([items[number] for number in kept], path)
        clients, client_names = _clients([item.text("client") for item in items], path)
        parts = _parts(items)
        return RawGraphs(
            name,
            topology,
            None,
            (),
            features,
            labels.taken(kept),
            labels.names,
            labels.kind,
            edge_attributes=edges,
            refused=(*refused, *_not_read(items, _OF_GRAPHS)),
            clients=None if clients is None else clients[kept],
            client_names=client_names,
            parts=None if parts is None else parts[kept],
        )


def read_network(path: Path, task: str, name: str) -> RawGraphs:
    """Read one graph; every node with a label is an example.

    Parameters
    ----------
    path : Path
        A `Data` with ``edge_index``, ``y`` of each node, and ``x`` or ``num_nodes``; ``edge_attr``,
        ``train_mask``, ``val_mask``, ``test_mask`` and ``client`` of each node are read where they are there,
        other fields are not. A whole ``y`` below 0 is no label.
    task, name : str
        See `read_graphs`.

    Raises
    ------
    BadInput
        The file is damaged, or not consistent.
    """
    with saved(path) as file:
        item = _only(file, path)
        labels = _labels_of_nodes(item, task)
        features, topology, edges = structure([item], path)
        size = topology.num_nodes
        if len(labels.values) != size:
            raise item.wrong(f"y has {len(labels.values)} rows for {size} nodes")
        places = np.flatnonzero(labels.present)
        parts = _parts_of_nodes(item, size)
        clients = item.array("client")
        texts = [""] * size if clients is None else item.texts("client", size)
        numbers, client_names = _clients(texts, path)
        raw = RawGraphs(
            name,
            topology,
            None,
            (),
            None,
            labels.taken(places),
            labels.names,
            labels.kind,
            edge_attributes=edges,
        )
        return replace(
            raw,
            node_attributes=_sparse(features),
            refused=_not_read([item], _OF_NODES),
            places=places,
            parts=None if parts is None else parts[places],
            clients=numbers,
            client_names=client_names,
        )


def _items(file: Saved, path: Path) -> list[Item]:
    return [Item(graph.fields, file, f"{path}: graph {place}") for place, graph in enumerate(file.graphs)]


def _only(file: Saved, path: Path) -> Item:
    return Item(file.graphs[0].fields, file, str(path))


def _labels(items: Sequence[Item], task: str, path: Path) -> Labels:
    """Return the labels of graphs."""
    rows = [_row(item) for item in items]
    widths = sorted({len(row) for row in rows if row is not None})
    if len(widths) != 1:
        wrong = f"y must be equally long in all graphs, here it is {' and '.join(map(str, widths))}"
        raise BadInput(f"{path}: {wrong if widths else 'no graph has y, its label'}")
    nothing = np.full(widths[0], np.nan)
    values = np.array([nothing if row is None else row for row in rows])
    return own_labels.of_numbers(values, _columns(widths[0]), task, str(path))


def _row(item: Item) -> Array | None:
    """Return the labels of a graph: one number, or a row of them."""
    array = item.array("y")
    if array is None:
        return None
    if array.size == 0 or (array.size > 1 and array.shape != (1, array.size)):
        raise item.wrong(f"y must be one number or a row [1, T], not of shape {list(array.shape)}")
    return array.astype(np.float64).reshape(-1)


def _labels_of_nodes(item: Item, task: str) -> Labels:
    array = item.array("y")
    if array is None or not 1 <= array.ndim <= 2 or not array.size:
        raise item.wrong("y must have a label for each node, as this is no list of graphs")
    values = array.astype(np.float64).reshape(len(array), -1)
    if array.dtype.kind in "iu":
        values[values < 0] = np.nan
    labels = own_labels.of_numbers(values, _columns(values.shape[1]), task, item.where)
    if labels.kind == "regression":
        raise item.wrong("y are numbers, but of nodes only classes, or labels of 0 and 1, are predicted")
    return labels


def _columns(width: int) -> list[str]:
    return ["y"] if width == 1 else [f"y{column}" for column in range(width)]


def _sparse(features: Float | None) -> Float | SparseRows | None:
    """Return features, without the zeros where hardly anything else is there, as of words."""
    if features is None or np.count_nonzero(features) > _DENSE * features.size:
        return features
    rows, columns = np.nonzero(features)
    keys = rows * features.shape[1] + columns
    return SparseRows(*csr_of(keys, *features.shape), features[rows, columns], features.shape[1])


def _clients(texts: Sequence[str], path: Path) -> tuple[Int | None, tuple[str, ...]]:
    """Return the client of each graph or node, and their names."""
    numbers, names = numbered(texts, str(path))
    if not names:
        return None, ()
    if len(without := np.flatnonzero(numbers < 0)):
        raise BadInput(f"{path}: graph {without[0]} has no client, others have: each needs one")
    return numbers, names


def _parts(items: Sequence[Item]) -> npt.NDArray[np.int8] | None:
    """Return the part of each graph."""
    texts = [item.text("split").lower() for item in items]
    for item, text in zip(items, texts, strict=True):
        if text not in PARTS:
            raise item.wrong(f"split '{text}' is none of {', '.join(filter(None, PARTS))}")
    return np.array([PARTS[text] for text in texts], np.int8) if any(texts) else None


def _parts_of_nodes(item: Item, size: int) -> npt.NDArray[np.int8] | None:
    """Return the part of each node, as the masks say."""
    parts = np.full(size, -1, np.int8)
    for part, key in enumerate(MASKS):
        mask = item.array(key)
        if mask is None:
            continue
        if mask.shape != (size,) or mask.dtype != np.bool_:
            raise item.wrong(f"{key} must say yes or no of each of the {size} nodes")
        if np.any(parts[mask] >= 0):
            raise item.wrong(f"{key}: a node is in two parts")
        parts[mask] = part
    return parts if np.any(parts >= 0) else None


def _not_read(items: Sequence[Item], known: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that are left out."""
    found = {name for item in items for name, value in item.fields.items() if value is not None}
    return tuple(f"field {visible(name)}: not read" for name in sorted(found - {*known}))
