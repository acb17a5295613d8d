"""Content of an HDF5 file, read without following anything that leads out of it.

A file may come from anybody. Links to other files, raw storage outside, virtual datasets and references would
show the reader's own data as if it were the file's; sizes may be absurd; groups may go round in circles. A
record has none of these, so a file with any of them is refused before a number is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedmpi.store.hdf5 import h5py
from fedmpi.store.schema import Array

_DEPTH = 8
_MOST_OBJECTS = 100_000
_MOST_ATTRIBUTES = 32
_MOST_ATTRIBUTE_BYTES = 1 << 24
_NUMBERS = (h5py.h5t.INTEGER, h5py.h5t.FLOAT)


class Damaged(ValueError):
    """The file holds something that no record holds, or not what was written; the text says where."""


@dataclass(frozen=True)
class Dataset:
    """A dataset whose numbers or texts lie in the file itself.

    Attributes
    ----------
    dtype : numpy.dtype
        Texts have kind "S" (of fixed length) or "O".
    shape : tuple of int
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    _id: h5py.h5d.DatasetID = field(repr=False)

    def read(self, rows: int | None = None) -> Array:
        """Return the content, or its first rows."""
        if rows is None or not self.shape:
            array = np.empty(self.shape, self.dtype)
            if array.size:
                self._id.read(h5py.h5s.ALL, h5py.h5s.ALL, array)
            return array
        array = np.empty((rows, *self.shape[1:]), self.dtype)
        if array.size:
            space = self._id.get_space()
            space.select_hyperslab((0,) * array.ndim, array.shape)
            self._id.read(h5py.h5s.create_simple(array.shape), space, array)
        return array

    def attributes(self) -> dict[str, Any]:
        """Return its attributes: numbers as int or float, texts as str, arrays as arrays."""
        return _attributes(self._id, "dataset")

    def texts(self) -> Array:
        """Return an array of str."""
        if self.dtype.kind not in "SO":
            raise Damaged("no text where one belongs")
        return _decoded(self.read())

    def text(self) -> str:
        """Return a single text."""
        if self.shape:
            raise Damaged("a list of texts where one belongs")
        return str(self.texts()[()])

    def integer(self) -> int:
        """Return a single integer."""
        if self.shape or self.dtype.kind not in "iu":
            raise Damaged("no integer where one belongs")
        return int(self.read()[()])


@dataclass(frozen=True)
class Tree:
    """Everything in a file, by path without a leading slash; the root is "".

    Attributes
    ----------
    groups : dict
        Attributes of each group, by name.
    datasets : dict of Dataset
    """

    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    datasets: dict[str, Dataset] = field(default_factory=dict)

    def below(self, group: str) -> dict[str, Dataset]:
        """Return the datasets of a group and the groups in it, by their path from there."""
        start = f"{group}/"
        return {path[len(start) :]: each for path, each in self.datasets.items() if path.startswith(start)}


def look_over(file: h5py.File) -> Tree:
    """Return what is in a file, nothing of it read but attributes.

    Raises
    ------
    Damaged
        It holds a link, a reference, storage outside, or more than fits into it.
    OSError, RuntimeError, KeyError, ValueError
        HDF5 finds it damaged.
    """
    return _Look(file.id.get_filesize()).tree(h5py.h5o.open(file.id, b"/"))


class _Look:
    """One walk through a file."""

    def __init__(self, size: int) -> None:
        self._size, self._left = size, size
        self._seen: set[Any] = set()
        self._tree = Tree()

    def tree(self, root: h5py.h5g.GroupID) -> Tree:
        self._group(root, "", 0)
        return self._tree

    def _group(self, group: h5py.h5g.GroupID, path: str, depth: int) -> None:
        if depth > _DEPTH:
            raise Damaged(f"/{path}: groups nested deeper than {_DEPTH}")
        self._once(group, path)
        self._tree.groups[path] = _attributes(group, path)
        for name in list(group):
            inner = f"{path}/{name.decode()}".lstrip("/")
            kind = group.links.get_info(name).type
            if kind != h5py.h5l.TYPE_HARD:
                what = {h5py.h5l.TYPE_SOFT: "a soft link", h5py.h5l.TYPE_EXTERNAL: "a link to another file"}
                raise Damaged(f"/{inner} is {what.get(kind, 'a link')}, and no link is followed")
            item = h5py.h5o.open(group, name)
            if isinstance(item, h5py.h5g.GroupID):
                self._group(item, inner, depth + 1)
            elif isinstance(item, h5py.h5d.DatasetID):
                self._dataset(item, inner)
            else:
                raise Damaged(f"/{inner} is neither a group nor a dataset")

    def _once(self, item: h5py.h5g.GroupID | h5py.h5d.DatasetID, path: str) -> None:
        address = h5py.h5o.get_info(item).addr
        if address in self._seen or len(self._seen) >= _MOST_OBJECTS:
            raise Damaged(f"/{path} is in the file twice, or one of too many")
        self._seen.add(address)

    def _dataset(self, item: h5py.h5d.DatasetID, path: str) -> None:
        self._once(item, path)
        plan = item.get_create_plist()
        layout = plan.get_layout()
        if layout == h5py.h5d.VIRTUAL:
            raise Damaged(f"/{path} is a virtual dataset: its numbers lie in other files, never read")
        if plan.get_external_count():
            raise Damaged(f"/{path} has its numbers in another file, which is never read")
        if layout not in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT) or plan.get_nfilters():
            raise Damaged(f"/{path} is stored in chunks or through a filter, which no record is")
        _check_type(item.get_type(), path)
        shape = _shape(item.get_space(), path)
        num_bytes = math.prod(shape) * item.get_type().get_size()
        self._take(num_bytes, path)
        offset = item.get_offset()
        inside = offset is not None and offset + num_bytes <= self._size
        if layout == h5py.h5d.CONTIGUOUS and num_bytes and not inside:
            raise Damaged(f"/{path} is not in the file in full")
        self._tree.datasets[path] = Dataset(item.dtype, shape, item)

    def _take(self, num_bytes: int, path: str) -> None:
        """Count what was found: all together is not more than the file has."""
        self._left -= num_bytes
        if self._left < 0:
            raise Damaged(f"/{path} has a size that does not fit into the file")


def _attributes(item: h5py.h5g.GroupID | h5py.h5d.DatasetID, path: str) -> dict[str, Any]:
    count = h5py.h5a.get_num_attrs(item)
    if count > _MOST_ATTRIBUTES:
        raise Damaged(f"/{path} has {count} attributes")
    values: dict[str, Any] = {}
    for number in range(count):
        each = h5py.h5a.open(item, index=number)
        name = each.name.decode()
        _check_type(each.get_type(), f"{path}: attribute {name}")
        shape = _shape(each.get_space(), f"{path}: attribute {name}")
        if math.prod(shape) * each.get_type().get_size() > _MOST_ATTRIBUTE_BYTES:
            raise Damaged(f"/{path}: attribute {name} is longer than any of a record")
        array = np.empty(shape, each.dtype)
        if array.size:
            each.read(array)
        values[name] = _value(array)
    return values


def _check_type(kind: h5py.h5t.TypeID, path: str) -> None:
    """Refuse every type but numbers, flags and texts: references among others lead elsewhere."""
    plain = kind.get_class() in _NUMBERS or kind.get_class() == h5py.h5t.STRING
    flag = kind.get_class() == h5py.h5t.ENUM and kind.get_size() == 1
    if not (plain or flag) or kind.committed():
        raise Damaged(f"/{path} is of a type that no record has")


def _shape(space: h5py.h5s.SpaceID, path: str) -> tuple[int, ...]:
    if space.get_simple_extent_type() not in (h5py.h5s.SCALAR, h5py.h5s.SIMPLE):
        raise Damaged(f"/{path} has no content")
    return tuple(space.shape)


def _value(array: Array) -> Any:
    """Return an attribute as a plain value where it is one; texts as str."""
    if array.dtype.kind in "SO":
        array = _decoded(array)
    return array[()].item() if array.shape == () else array


def _decoded(array: Array) -> Array:
    texts = [bytes(item).decode() for item in array.ravel().tolist()]
    return np.array(texts, dtype=str).reshape(array.shape)
