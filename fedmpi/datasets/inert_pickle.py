"""Pickles read without running anything of theirs; `unpickle`: arrays and sparse matrices by Python 2.

Plain unpickling calls whatever a file names. Here the names are stand-ins that keep what they are given,
the instructions are those that such files need, and arrays are made of the bytes that are there.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.bounds import Bounded, undamaged

MOST_BYTES = 1 << 26
"""Of one file; the largest known one, the words of PubMed, has about 12 MB."""

# fmt: off
OPERATIONS = frozenset({
    "PROTO", "GLOBAL", "EMPTY_TUPLE", "NEWOBJ", "EMPTY_DICT", "REDUCE",
    "NONE", "BUILD", "NEWFALSE", "NEWTRUE", "SETITEMS", "STOP", "BININT", "BININT1", "BININT2",
    "APPENDS", "APPEND", "MARK", "BINGET", "BINPUT", "LONG_BINPUT", "LONG_BINGET",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST",
})
"""Instructions that every file may have."""
# fmt: on
_STRINGS = frozenset({"SHORT_BINSTRING", "BINSTRING"})
_DTYPE = re.compile(r"[iu][1248]|f[48]")


class _Type:
    """Stands for ``numpy.dtype``."""

    def __init__(self, code: str, *_: Any) -> None:
        if not _DTYPE.fullmatch(code):
            raise ValueError(f"numbers of type {code}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder("<" if state[1] == "|" else state[1])


class _Array:
    """Stands for ``numpy.ndarray``."""

    values: npt.NDArray[Any]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, content = state
        content = content.encode("latin1")
        if math.prod(shape) * kind.dtype.itemsize != len(content):
            raise ValueError(f"{len(content)} bytes for an array of shape {shape}")
        flat = np.frombuffer(content, kind.dtype)
        self.values = flat.reshape(shape, order="F" if by_columns else "C")


class Csr:
    """Stands for a SciPy CSR matrix: its row pointers, columns and values, as they are in the file."""

    row_ptr: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    values: npt.NDArray[Any]
    shape: tuple[int, int]

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = [state[name].values for name in ("indptr", "indices", "data")]
        self.row_ptr, self.columns, self.values = arrays
        rows, columns = state["_shape"]
        self.shape = rows, columns
        if any(array.ndim != 1 for array in arrays) or not all(isinstance(n, int) for n in self.shape):
            raise ValueError("a sparse matrix that is none")


StandIns = Mapping[tuple[str, str], Any]
"""By module and name that a file may have."""

_STAND_INS: StandIns = {
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("scipy.sparse.csr", "csr_matrix"): Csr,
    ("collections", "defaultdict"): lambda *_: {},
    ("__builtin__", "list"): list,
}


class Foreign(ValueError):
    """A file names what has no stand-in."""


class _Inert(pickle.Unpickler):
    """Knows stand-ins and nothing else."""

    def __init__(self, content: bytes, stand_ins: StandIns, persistent: Callable[[Any], Any]) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._stand_ins, self._persistent = stand_ins, persistent

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._stand_ins:
            raise Foreign(f"it names {module}.{name}")
        return self._stand_ins[module, name]

    def persistent_load(self, pid: Any) -> Any:
        return self._persistent(pid)


def load(
    content: bytes,
    stand_ins: StandIns,
    operations: frozenset[str],
    persistent: Callable[[Any], Any] = lambda pid: None,
) -> Any:
    """Return what a pickle holds.

    Parameters
    ----------
    content : bytes
    stand_ins : mapping
    operations : frozenset of str
        Instructions that it may have beside `OPERATIONS`.
    persistent : callable, optional
        Returns what stands for something outside the pickle.

    Raises
    ------
    Foreign
    ValueError
        It has another instruction. What a damaged one raises beside may be anything.
    """
    for operation, number, _ in pickletools.genops(content):
        if operation.name not in OPERATIONS and operation.name not in operations:
            raise ValueError(f"it has the instruction {operation.name}")
        if "PUT" in operation.name and int(str(number)) > len(content):  # takes memory for so many
            raise ValueError(f"it stores value number {number}")
    return _Inert(content, stand_ins, persistent).load()


def unpickle(path: Path) -> Any:
    """Return an array, a `Csr` or a dict of lists from a file.

    Raises
    ------
    BadInput
        The file is damaged, too large, or holds something else.
    """
    with undamaged(path), path.open("rb") as file:
        content = Bounded(file, MOST_BYTES, str(path)).readall()
        found = load(content, _STAND_INS, _STRINGS)
        return found.values if isinstance(found, _Array) else found
