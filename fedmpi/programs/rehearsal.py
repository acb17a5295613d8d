"""Whether a resumed algorithm would go on as before: a new instance takes part in one round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities import ServerState

Call = tuple[str, tuple[Any, ...]]
"""A hook and its arguments."""

REHEARSED = frozenset(
    {"participants", "update", "observe", "split_candidates", "should_split", "split", "after_splits"}
    | {"aggregate", "decide"}
    | {"change"}
)
"""Hooks that take and give plain values; the others take clients and batches."""

_PLAIN = (bool, int, float, complex, str, bytes, set, frozenset, np.generic)


class Rehearsal:
    """A second instance of an algorithm, as a resumed run would have it, for the hooks of one round.

    Parameters
    ----------
    algorithm : Algorithm

    Attributes
    ----------
    playing : str
        The hook of the second instance that runs, or ran last.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.playing = "__init__"
        self._algorithm, self._twin = algorithm, type(algorithm)(algorithm.options)

    def prepare(self, begun: Sequence[Call], state: Mapping[str, Any] | None, *, warmed: bool) -> None:
        """Do with the second instance what a resumed run does before its rounds.

        Parameters
        ----------
        begun : sequence of Call
            What is called once before the rounds.
        state : mapping or None
            What a checkpoint would hold of the server, where this rank is the server and it holds any.
        warmed : bool
            Whether this rank calls `warm_up`.
        """
        for self.playing, arguments in begun:
            getattr(self._twin, self.playing)(*copied(arguments))
        if state is not None and isinstance(self._twin, ServerState):
            self.playing = "restore"
            self._twin.restore(copied(state))
        if warmed:
            self.playing = "warm_up"
            self._twin.warm_up()

    def copies(self, hook: str, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the arguments for the second instance, before the hook changes them; None: not rehearsed."""
        if hook not in REHEARSED:
            return None
        try:
            found: tuple[Any, ...] = copied(arguments)
        except Exception:  # such as of a tensor within a graph of gradients
            return None
        return found

    def breach(self, hook: str, copies: tuple[Any, ...], arguments: tuple[Any, ...], value: Any) -> str:
        """Return what is wrong with a hook; nothing where the second instance does the same.

        Parameters
        ----------
        hook : str
        copies : tuple
            What `copies` returned.
        arguments : tuple
            As the hook left them.
        value
            What it returned.
        """
        try:
            other = getattr(self._twin, hook)(*copies)
        except Exception as error:
            return f"raises {type(error).__name__} in a new instance: {self._advice()}"
        if alike(value, other) and alike(arguments, copies):
            return ""
        return f"gives another value than in a new instance: {self._advice()}"

    def _advice(self) -> str:
        ours, others = vars(self._algorithm), vars(self._twin)
        kept = [f"self.{name}" for name, one in ours.items() if not alike(one, others.get(name))]
        if not kept:
            unknown = ", ".join(f"self.{name}" for name, one in ours.items() if not is_comparable(one))
            also = f"; {unknown} may hold what no checkpoint does (docs/extend.md)" if unknown else ""
            return f"it must depend on its arguments alone, random numbers on fedmpi.seeds{also}"
        place = "state() must return it and restore() must set it"
        if not isinstance(self._algorithm, ServerState):
            place = "derive from ServerState, and return it in state()"
        names = ", ".join(kept)
        return f"no checkpoint holds {names}, so a resumed run would differ; {place} (docs/extend.md)"


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
    if isinstance(one, torch.Tensor):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        one, other = (each.detach().cpu().contiguous().view(torch.uint8).numpy() for each in (one, other))
    return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
