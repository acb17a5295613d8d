"""Arrays as JSON without losing a bit, and the bitwise comparison that replay and `compare` use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def encode(array: Array) -> Any:
    """Return the array as nested lists; NaN becomes None, infinities "inf" and "-inf".

    Python prints a float64 with the fewest digits that read back to the same
    bits, so `decode` restores every number exactly (NaN payloads excepted).
    """
    plain = array.tolist()
    if array.dtype.kind != "f" or bool(np.isfinite(array).all()):
        return plain
    return _encode_floats(plain)


def _encode_floats(value: Any) -> Any:
    if isinstance(value, list):
        return [_encode_floats(item) for item in value]
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else repr(value)


def decode(value: Any, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return the array that `encode` was given."""
    flat = _flatten(value)
    if np.dtype(dtype).kind == "f":
        flat = [math.nan if item is None else float(item) for item in flat]
    return np.array(flat, dtype=dtype).reshape(shape)


def _flatten(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [leaf for item in value for leaf in _flatten(item)]


def different(first: Array, second: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the elements whose bits differ; NaN equals NaN, 0.0 differs from -0.0.

    Both arrays have the same dtype and shape.
    """
    assert first.dtype == second.dtype and first.shape == second.shape
    if first.dtype.kind != "f":
        return np.asarray(first != second)
    bits = f"u{first.dtype.itemsize}"
    unequal = np.ascontiguousarray(first).view(bits) != np.ascontiguousarray(second).view(bits)
    return np.asarray(unequal.reshape(first.shape) & ~(np.isnan(first) & np.isnan(second)))
