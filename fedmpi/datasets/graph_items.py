"""Structure and features of torch-geometric's `Data` in a file: nodes, edges and the numbers of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.bounds import too_large
from fedmpi.datasets.inert_torch import MOST_BYTES, Saved, Tensor
from fedmpi.datasets.networks import attributed
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Float, Topology, pointers

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Item:
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


def structure(items: Sequence[Item], path: Path) -> tuple[Float | None, Topology, Float | None]:
    """Return features of all nodes, the graphs, and attributes of their edges."""
    features, edges, attributes, sizes, taken = [], [], [], [], 0
    for item in items:
        x, ends = _rows(item, "x", "node"), _edges(item)
        of_edges = _rows(item, "edge_attr", "edge")
        if of_edges is not None and len(of_edges) != ends.shape[1]:
            raise item.wrong(f"edge_attr has {len(of_edges)} rows for {ends.shape[1]} edges")
        size = _num_nodes(item, x, ends)
        if ends.size and not 0 <= ends.min() <= ends.max() < size:
            raise item.wrong(f"edge_index has nodes {ends.min()} to {ends.max()}, but there are {size} nodes")
        taken += ends.nbytes + sum(4 * table.size for table in (x, of_edges) if table is not None)
        if taken > MOST_BYTES:
            raise BadInput(too_large(str(path), MOST_BYTES))
        features.append(x)
        edges.append(ends)
        attributes.append(of_edges)
        sizes.append(size)
    graph_ptr = pointers(sizes)
    senders, receivers = np.concatenate(
        [ends + start for ends, start in zip(edges, graph_ptr[:-1], strict=True)], axis=1, dtype=np.int64
    )
    joined = [item for item, ends in zip(items, edges, strict=True) if ends.size]
    of_joined = [table for table, ends in zip(attributes, edges, strict=True) if ends.size]
    topology, summed = attributed(senders, receivers, graph_ptr, _stacked(of_joined, joined, "edge_attr"))
    if summed is not None and not np.isfinite(summed).all():
        raise BadInput(f"{path}: edge_attr of duplicate edges, added up, is not finite in 32 bits")
    return _stacked(features, items, "x"), topology, summed


def _stacked(tables: Sequence[Array | None], items: Sequence[Item], key: str) -> Float | None:
    """Return the rows of all graphs; all have equally many columns, or none."""
    widths = [None if table is None else table.shape[1] for table in tables]
    for item, width in zip(items, widths, strict=True):
        if width != widths[0]:
            raise item.wrong(f"{key} has {width or 'no'} columns, the first graph's {widths[0] or 'no'}")
    if not widths or not widths[0]:
        return None
    found = [table for table in tables if table is not None]
    return np.concatenate(found, axis=0, dtype=np.float32, casting="unsafe")


def _rows(item: Item, key: str, what: str) -> Array | None:
    """Return a field with a row of numbers for each node or edge."""
    table = item.array(key)
    if table is None:
        return None
    if table.ndim == 1 and what == "edge":
        table = table[:, None]
    if table.ndim != 2:
        raise item.wrong(
            f"{key} must have a row of features for each {what}, not the shape {list(table.shape)}"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(table.astype(np.float32)).all():
            raise item.wrong(f"{key} is not finite in 32 bits")
    return table


def _edges(item: Item) -> Array:
    ends = item.array("edge_index")
    if ends is None or ends.ndim != 2 or len(ends) != 2 or ends.dtype.kind not in "iu":
        raise item.wrong("edge_index must be whole numbers [2, E]")
    return ends


def _num_nodes(item: Item, x: Array | None, ends: Array) -> int:
    """Return the number of nodes: rows of x, else what ``num_nodes`` says, else those that have edges."""
    said = item.fields.get("num_nodes")
    size = said if said is not None else len(x) if x is not None else int(ends.max(initial=-1)) + 1
    if type(size) is not int or not 0 < size <= MOST_BYTES:
        raise item.wrong("has no nodes: x, or num_nodes, must say how many")
    if x is not None and len(x) != size:
        raise item.wrong(f"x has {len(x)} rows for {size} nodes")
    return size
