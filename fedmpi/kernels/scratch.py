"""Buffers that compiled passes use again and again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_LINE = 64
"""Bytes of a cache line; a vector of 512 bits that begins inside one costs two loads."""


class Scratch:
    """Buffers by name and type that grow with need and are used again by every client of a rank."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, type], npt.NDArray[np.generic]] = {}
        self._latest: dict[tuple[str, type], npt.NDArray[Any]] = {}

    def __call__(self, name: str, rows: int, width: int, dtype: type[np.generic] = np.float32) -> Floats:
        """Return an uninitialised array [rows, width]; one of the same name may share its memory."""
        key = name, dtype
        latest: Any = self._latest.get(key)
        if latest is None or latest.shape != (rows, width):
            buffer = self._buffers.get(key)
            if buffer is None or buffer.size < rows * width:
                buffer = self._buffers[key] = aligned(rows * width, dtype)
            latest = self._latest[key] = buffer[: rows * width].reshape(rows, width)
        return latest  # type: ignore[no-any-return]


def aligned(size: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[np.generic]:
    """Return an uninitialised array [size] that starts at a cache line; NumPy's own do by chance."""
    length = size * np.dtype(dtype).itemsize
    memory = np.empty(length + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + length].view(dtype)


def zeros(*shape: int) -> Floats:
    """Return float32 zeros that start at a cache line."""
    found = aligned(math.prod(shape))
    found[:] = 0
    return found.reshape(shape)  # type: ignore[return-value]
