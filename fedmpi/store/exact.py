"""Arrays as JSON without losing a bit, and the bitwise comparison that replay and `compare` use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LEAVES: dict[str, set[type]] = {
    "f": {float, type(None), str},
    "i": {int},
    "u": {int},
    "b": {bool},
    "U": {str},
}
_INFINITIES = {"inf": math.inf, "-inf": -math.inf, None: math.nan}


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
    """Return the array that `encode` was given.

    Raises
    ------
    ValueError
        The value is nothing that `encode` makes of such an array.
    """
    kind = np.dtype(dtype).kind
    flat = _flatten(value, shape)
    if not set(map(type, flat)) <= _LEAVES.get(kind, set()):
        raise ValueError(f"not all of it is of type {dtype}")
    if kind == "f":
        flat = [item if type(item) is float else _special(item) for item in flat]
    try:
        array = np.array(flat, dtype=dtype)
    except OverflowError as error:
        raise ValueError(f"a number does not fit {dtype}") from error
    if kind == "U" and array.tolist() != flat:
        raise ValueError(f"a text does not fit {dtype}")
    return array.reshape(shape)


def _special(item: Any) -> float:
    if item not in _INFINITIES:
        raise ValueError(f"{item!r} is no number")
    return _INFINITIES[item]


def _flatten(value: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the leaves of lists that are nested as the shape says."""
    if not shape:
        return [value]
    if not isinstance(value, list) or len(value) != shape[0]:
        raise ValueError(f"not an array of shape {list(shape)}")
    if len(shape) == 1:
        return value
    return [leaf for item in value for leaf in _flatten(item, shape[1:])]


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
