"""Graphs of one's own, made with torch-geometric: a list of `Data`, or one whose nodes have labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import labels as own_labels
from fedmpi.datasets.bounds import too_large
from fedmpi.datasets.inert_torch import MOST_BYTES, Saved, Tensor, saved
from fedmpi.datasets.labels import Labels, numbered
from fedmpi.datasets.networks import csr_of, directed
from fedmpi.datasets.own import PARTS
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import SparseRows, pointers
from fedmpi.visible import visible

Array = npt.NDArray[Any]

MASKS = ("train_mask", "val_mask", "test_mask")
"""In the order of `RawGraphs.parts`."""

_DENSE = 0.1
"""Share of the features that are not 0, above which these are not kept sparse; of Cora's it is 0.013."""

_OF_GRAPHS = ("x", "edge_index", "y", "num_nodes", "client", "split")
_OF_NODES = ("x", "edge_index", "y", "num_nodes", "client", *MASKS)


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

    Edges keep their directions; duplicates and self-loops are removed. A graph without a label is left out.

    Parameters
    ----------
    path : Path
        A list of `Data` with ``edge_index``, ``y``, and ``x`` or ``num_nodes``; ``client`` and ``split`` are
        read where they are there, other fields are not.
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
        features, senders, receivers, sizes = _structure([items[number] for number in kept], path)
        clients, client_names = _clients([item.text("client") for item in items], path)
        parts = _parts(items)
        return RawGraphs(
            name,
            directed(senders, receivers, pointers(sizes)),
            None,
            (),
            features,
            labels.taken(kept),
            labels.names,
            labels.kind,
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
        A `Data` with ``edge_index``, ``y`` of each node, and ``x`` or ``num_nodes``; ``train_mask``,
        ``val_mask``, ``test_mask`` and ``client`` of each node are read where they are there, other fields
        are not. A whole ``y`` below 0 is no label.
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
        features, senders, receivers, (size,) = _structure([item], path)
        if len(labels.values) != size:
            raise item.wrong(f"y has {len(labels.values)} rows for {size} nodes")
        places = np.flatnonzero(labels.present)
        parts = _parts_of_nodes(item, size)
        clients = item.array("client")
        texts = [""] * size if clients is None else item.texts("client", size)
        numbers, client_names = _clients(texts, path)
        raw = RawGraphs(
            name,
            directed(senders, receivers, pointers([size])),
            None,
            (),
            None,
            labels.taken(places),
            labels.names,
            labels.kind,
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


@dataclass(frozen=True)
class _Item:
    """A graph of a file.

    Attributes
    ----------
    fields : mapping
    file : Saved
    where : str
        For messages.
    """

    fields: Mapping[str, Any]
    file: Saved
    where: str

    def wrong(self, text: str) -> BadInput:
        """Return what to raise of this graph."""
        return BadInput(f"{self.where}: {text}")

    def array(self, key: str) -> Array | None:
        """Return a field of numbers, None where it is not there."""
        value = self.fields.get(key)
        if isinstance(value, Tensor):
            return self.file.array(value)
        if value is None or isinstance(value, bool | int | float):
            return None if value is None else np.asarray(value, np.float64)
        raise self.wrong(f"{key} must be numbers")

    def text(self, key: str) -> str:
        """Return a field of text or of one whole number, empty where it is not there."""
        value = self.fields.get(key)
        if isinstance(value, str):
            return value.strip()
        return "" if value is None else self.texts(key, 1)[0]

    def texts(self, key: str, size: int) -> list[str]:
        """Return a field of so many whole numbers as text."""
        array = self.array(key)
        if array is None or array.size != size or not np.isfinite(array).all() or np.any(array % 1):
            raise self.wrong(f"{key} must be {size} whole number{'s' * (size > 1)}")
        return [str(int(value)) for value in array.reshape(-1)]


def _items(file: Saved, path: Path) -> list[_Item]:
    return [_Item(graph.fields, file, f"{path}: graph {place}") for place, graph in enumerate(file.graphs)]


def _only(file: Saved, path: Path) -> _Item:
    return _Item(file.graphs[0].fields, file, str(path))


def _labels(items: Sequence[_Item], task: str, path: Path) -> Labels:
    """Return the labels of graphs."""
    rows = [_row(item) for item in items]
    widths = sorted({len(row) for row in rows if row is not None})
    if len(widths) != 1:
        found = " and ".join(map(str, widths)) or "not there"
        raise BadInput(f"{path}: y must be equally long in all graphs, here it is {found}")
    nothing = np.full(widths[0], np.nan)
    values = np.array([nothing if row is None else row for row in rows])
    return own_labels.of_numbers(values, _columns(widths[0]), task, str(path))


def _row(item: _Item) -> Array | None:
    """Return the labels of a graph: one number, or a row of them."""
    array = item.array("y")
    if array is None:
        return None
    if array.size == 0 or (array.size > 1 and array.shape != (1, array.size)):
        raise item.wrong(f"y must be one number or a row [1, T], not of shape {list(array.shape)}")
    return array.astype(np.float64).reshape(-1)


def _labels_of_nodes(item: _Item, task: str) -> Labels:
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


def _structure(
    items: Sequence[_Item], path: Path
) -> tuple[npt.NDArray[np.float32] | None, Int, Int, list[int]]:
    """Return features of all nodes, ends of all edges, and nodes of each graph."""
    features, edges, sizes, taken = [], [], [], 0
    for item in items:
        x, ends = _features(item), _edges(item)
        size = _num_nodes(item, x, ends)
        if ends.size and not 0 <= ends.min() <= ends.max() < size:
            raise item.wrong(f"edge_index has nodes {ends.min()} to {ends.max()}, but there are {size} nodes")
        taken += ends.nbytes + (0 if x is None else 4 * x.size)
        if taken > MOST_BYTES:
            raise BadInput(too_large(str(path), MOST_BYTES))
        features.append(x)
        edges.append(ends)
        sizes.append(size)
    offsets = pointers(sizes)[:-1]
    senders, receivers = np.concatenate(
        [ends + start for ends, start in zip(edges, offsets, strict=True)], axis=1, dtype=np.int64
    )
    return _stacked(features, items), senders, receivers, sizes


def _stacked(features: Sequence[Array | None], items: Sequence[_Item]) -> npt.NDArray[np.float32] | None:
    """Return the features of all nodes; all graphs have equally many, or none."""
    widths = [None if x is None else x.shape[1] for x in features]
    for item, width in zip(items, widths, strict=True):
        if width != widths[0]:
            raise item.wrong(f"x has {width or 'no'} columns, the first graph's {widths[0] or 'no'}")
    if not widths[0]:
        return None
    return np.concatenate([x for x in features if x is not None], axis=0, dtype=np.float32, casting="unsafe")


def _sparse(features: npt.NDArray[np.float32] | None) -> npt.NDArray[np.float32] | SparseRows | None:
    """Return features, without the zeros where hardly anything else is there, as of words."""
    if features is None or np.count_nonzero(features) > _DENSE * features.size:
        return features
    rows, columns = np.nonzero(features)
    keys = rows * features.shape[1] + columns
    return SparseRows(*csr_of(keys, *features.shape), features[rows, columns], features.shape[1])


def _features(item: _Item) -> Array | None:
    x = item.array("x")
    if x is None:
        return None
    if x.ndim != 2:
        raise item.wrong(f"x must have a row of features for each node, not the shape {list(x.shape)}")
    with np.errstate(over="ignore"):
        if not np.isfinite(x.astype(np.float32)).all():
            raise item.wrong("x is not finite in 32 bits")
    return x


def _edges(item: _Item) -> Array:
    ends = item.array("edge_index")
    if ends is None or ends.ndim != 2 or len(ends) != 2 or ends.dtype.kind not in "iu":
        raise item.wrong("edge_index must be whole numbers [2, E]")
    return ends


def _num_nodes(item: _Item, x: Array | None, ends: Array) -> int:
    """Return the number of nodes: rows of x, else what ``num_nodes`` says, else those that have edges."""
    said = item.fields.get("num_nodes")
    size = said if said is not None else len(x) if x is not None else int(ends.max(initial=-1)) + 1
    if type(size) is not int or not 0 < size <= MOST_BYTES:
        raise item.wrong("has no nodes: x, or num_nodes, must say how many")
    if x is not None and len(x) != size:
        raise item.wrong(f"x has {len(x)} rows for {size} nodes")
    return size


def _clients(texts: Sequence[str], path: Path) -> tuple[Int | None, tuple[str, ...]]:
    """Return the client of each graph or node, and their names."""
    numbers, names = numbered(texts, str(path))
    if not names:
        return None, ()
    if len(without := np.flatnonzero(numbers < 0)):
        raise BadInput(f"{path}: graph {without[0]} has no client, others have: each needs one")
    return numbers, names


def _parts(items: Sequence[_Item]) -> npt.NDArray[np.int8] | None:
    """Return the part of each graph."""
    texts = [item.text("split").lower() for item in items]
    for item, text in zip(items, texts, strict=True):
        if text not in PARTS:
            raise item.wrong(f"split '{text}' is none of {', '.join(filter(None, PARTS))}")
    return np.array([PARTS[text] for text in texts], np.int8) if any(texts) else None


def _parts_of_nodes(item: _Item, size: int) -> npt.NDArray[np.int8] | None:
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


def _not_read(items: Sequence[_Item], known: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that are left out."""
    found = {name for item in items for name, value in item.fields.items() if value is not None}
    return tuple(f"field {visible(name)}: not read" for name in sorted(found - {*known}))
