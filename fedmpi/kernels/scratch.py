"""Buffers that compiled passes use again and again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Scratch:
    """Buffers by name that grow with need and are used again by every client of a rank."""

    def __init__(self) -> None:
        self._buffers: dict[str, npt.NDArray[np.generic]] = {}

    def __call__(self, name: str, rows: int, width: int, dtype: npt.DTypeLike = np.float32) -> Floats:
        """Return an uninitialised array [rows, width]; one of the same name may share its memory."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < rows * width or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(rows * width, dtype)
        return buffer[: rows * width].reshape(rows, width)  # type: ignore[return-value]
