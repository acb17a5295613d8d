"""Copies of values, and whether two are equal to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel

_PLAIN = (bool, int, float, complex, str, bytes, set, frozenset, np.generic)


def copied(value: Any) -> Any:
    """Return a deep copy; its arrays have the same steps in memory, on which the rounding of sums depends."""
    if isinstance(value, np.ndarray) and not value.flags.c_contiguous and min(value.strides) > 0:
        bytes_there = sum((n - 1) * step for n, step in zip(value.shape, value.strides, strict=True))
        whole = np.zeros(max(0, bytes_there) + value.itemsize, np.uint8)
        same = np.ndarray(value.shape, value.dtype, whole, 0, value.strides)
        same[...] = value
        return same
    if hasattr(value, "again"):
        return value.again()
    if isinstance(value, Mapping):
        return {key: copied(each) for key, each in value.items()}
    return tuple(map(copied, value)) if type(value) is tuple else deepcopy(value)


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal to the bit; of what cannot be compared, True."""
    if hasattr(one, "made") and hasattr(other, "made"):
        return alike(one.made, other.made)
    arrays = torch.Tensor | np.ndarray
    if isinstance(one, arrays) or isinstance(other, arrays):
        return type(one) is type(other) and _same_array(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(alike(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if one is None or other is None:
        return one is other
    if isinstance(one, _PLAIN) and isinstance(other, _PLAIN):
        return bool(one == other) or (one != one and other != other)
    return True


def is_comparable(value: Any) -> bool:
    """Return whether `alike` can tell two such values apart."""
    if isinstance(value, Mapping):
        return all(map(is_comparable, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_comparable, value))
    known = (torch.Tensor, np.ndarray, *_PLAIN)
    has_fields = is_dataclass(value) or isinstance(value, BaseModel)
    return value is None or isinstance(value, known) or has_fields


def _same_array(one: Any, other: Any) -> bool:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if isinstance(one, torch.Tensor):
        one, other = (each.detach().cpu().contiguous().view(torch.uint8).numpy() for each in (one, other))
    return bool(one.tobytes() == other.tobytes())
