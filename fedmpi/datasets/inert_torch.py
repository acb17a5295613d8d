"""Graphs of torch-geometric in a file of ``torch.save``, read without torch and without running anything.

The file is an archive: a pickle whose tensors name the files of their numbers. See `inert_pickle`.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.archives import opened
from fedmpi.datasets.bounds import too_large
from fedmpi.datasets.inert_pickle import Foreign, load
from fedmpi.errors import BadInput

MOST_BYTES = 1 << 31
"""Of a file once unpacked, and of the arrays that are made of it."""

_PICKLE = "data.pkl"
_OPERATIONS = frozenset({"BINUNICODE", "BINPERSID", "BINFLOAT", "LONG1", "SETITEM"})
_NUMBERS = {
    "Double": "<f8", "Float": "<f4", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Short": "<i2",
    "Char": "|i1", "Byte": "|u1", "Bool": "|b1",
}  # fmt: skip
"""Type of the numbers of each kind of storage."""

_Storage = tuple[str, str, int]
"""Type, file and count of some numbers."""


class _StandIn:
    """Base of what a pickle may make; a class that sets no state itself has none that could be set."""

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a state for what has none")


class Graph(_StandIn):
    """Stands for ``torch_geometric.data.Data``."""

    _state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._state = state

    @property
    def fields(self) -> Mapping[str, Any]:
        """Fields by name: a `Tensor`, or a value of Python."""
        fields = self._state["_store"].mapping
        if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
            raise ValueError("a graph without fields")
        return fields


class _Store(_StandIn):
    """Stands for the storage of a `Data`."""

    mapping: Any

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.mapping = state["_mapping"]


class Tensor(_StandIn):
    """Stands for a tensor: which numbers of which file it has.

    Attributes
    ----------
    dtype : str
        Type of its numbers.
    file : str
    count : int
        Numbers in the file.
    offset : int
        Of these, those before the first.
    shape, strides : tuple of int
        Steps between neighbours, in numbers.
    """

    def __init__(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
    ) -> None:
        self.dtype, self.file, self.count = storage
        self.offset, self.shape, self.strides = offset, tuple(shape), tuple(strides)
        numbers = (self.count, offset, *self.shape, *self.strides)
        whole = all(type(number) is int and number >= 0 for number in numbers)
        if not whole or len(self.shape) != len(self.strides) or self.dtype not in _NUMBERS.values():
            raise ValueError("a tensor that is none")
        last = offset + sum((size - 1) * step for size, step in zip(self.shape, self.strides, strict=True))
        if math.prod(self.shape) and max(last + 1, math.prod(self.shape)) > self.count:
            raise ValueError(f"a tensor of shape {self.shape} in {self.count} numbers")


class _Nothing(_StandIn):
    """Stands for what is not read."""

    def __init__(self, *_: Any) -> None:
        pass


_STAND_INS = {
    ("torch_geometric.data.data", "Data"): Graph,
    ("torch_geometric.data.data", "DataEdgeAttr"): _Nothing,
    ("torch_geometric.data.data", "DataTensorAttr"): _Nothing,
    ("torch_geometric.data.storage", "GlobalStorage"): _Store,
    ("torch._utils", "_rebuild_tensor_v2"): Tensor,
    ("torch", "Size"): tuple,
    ("collections", "OrderedDict"): _Nothing,
    **{("torch", f"{kind}Storage"): dtype for kind, dtype in _NUMBERS.items()},
}


def _storage(pid: Any) -> _Storage:
    """Return the numbers that a pickle refers to."""
    kind, dtype, file, _, count = pid
    if kind != "storage":
        raise ValueError("it refers to something else than numbers")
    return dtype, str(file), count


class Saved:
    """What a file holds, open.

    Attributes
    ----------
    graphs : list of Graph
    """

    def __init__(self, archive: zipfile.ZipFile, folder: str, graphs: list[Graph]) -> None:
        self.graphs = graphs
        self._archive, self._folder = archive, folder
        self._files: dict[tuple[str, str], npt.NDArray[Any]] = {}

    def array(self, tensor: Tensor) -> npt.NDArray[Any]:
        """Return the numbers of a tensor; each file is read once."""
        place = tensor.file, tensor.dtype
        if place not in self._files:
            info = self._archive.getinfo(f"{self._folder}data/{tensor.file}")
            if info.file_size != tensor.count * np.dtype(tensor.dtype).itemsize:
                raise ValueError(f"{info.file_size} bytes for {tensor.count} numbers {tensor.dtype}")
            self._files[place] = np.frombuffer(self._archive.read(info), tensor.dtype)
        numbers = self._files[place]
        steps = [step * numbers.itemsize for step in tensor.strides]
        return np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, steps, writeable=False)


@contextmanager
def saved(path: Path) -> Iterator[Saved]:
    """Open a file that holds a `Data`, or a list of them.

    Raises
    ------
    BadInput
        It is damaged, here or while it is open, or it holds something else.
    """
    with opened(path, [_PICKLE], ["byteorder"], MOST_BYTES) as (archive, members):
        if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
            raise BadInput(too_large(str(path), MOST_BYTES))
        if "byteorder" in members and archive.read(members["byteorder"]) != b"little":
            raise BadInput(f"{path}: its numbers are not in the byte order of this machine: save it here")
        try:
            found = load(archive.read(members[_PICKLE]), _STAND_INS, _OPERATIONS, _storage)
        except Foreign as error:
            raise BadInput(
                f"{path}: {error}, which is not read: save a Data, or a list of them, with tensors, numbers "
                "and text alone"
            ) from error
        graphs = found if isinstance(found, list) else [found]
        if not graphs or not all(isinstance(graph, Graph) for graph in graphs):
            raise BadInput(f"{path}: holds neither a torch_geometric.data.Data nor a list of them")
        yield Saved(archive, members[_PICKLE].filename.removesuffix(_PICKLE), graphs)


def holds_list(path: Path) -> bool:
    """Return whether a file holds a list, by its first bytes; False where it cannot be read."""
    try:
        with opened(path, [_PICKLE], (), MOST_BYTES) as (archive, members):
            return archive.open(members[_PICKLE]).read(3)[2:] == b"]"
    except BadInput:
        return False
