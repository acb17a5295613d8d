"""Whether a resumed algorithm would go on as before: a new instance takes part in one round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities import ServerState

Call = tuple[str, tuple[Any, ...]]
"""A hook and its arguments."""

REHEARSED = frozenset(
    {
        "participants",
        "update",
        "observe",
        "split_candidates",
        "should_split",
        "split",
        "after_splits",
        "group",
    }
    | {"round_weights", "aggregate", "global_prototypes", "client_weights", "field_values"}
    | {"penalty", "personal_penalty", "correction", "renewed", "linear_term", "next_vector", "next_share"}
)
"""Hooks that take and give plain values; the others take clients and batches."""


class Rehearsal:
    """A second instance of an algorithm, as a resumed run would have it, for the hooks of one round.

    Parameters
    ----------
    algorithm : Algorithm
    begun : sequence of Call
        What is called once before the rounds.
    state : mapping or None
        What a checkpoint would hold of the server, where this rank is the server and it holds any.
    """

    def __init__(self, algorithm: Algorithm, begun: Sequence[Call], state: Mapping[str, Any] | None) -> None:
        self._algorithm, self._twin = algorithm, type(algorithm)(algorithm.options)
        for hook, arguments in begun:
            getattr(self._twin, hook)(*deepcopy(arguments))
        if state is not None and isinstance(self._twin, ServerState):
            self._twin.restore(deepcopy(dict(state)))

    def copies(self, hook: str, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the arguments for the second instance, before the hook changes them; None: not rehearsed."""
        return deepcopy(arguments) if hook in REHEARSED else None

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
            return "it must depend on its arguments alone, and take random numbers from fedmpi.seeds"
        place = "state() must return it and restore() must set it"
        if not isinstance(self._algorithm, ServerState):
            place = "derive from ServerState, and return it in state()"
        return (
            f"no checkpoint holds {', '.join(kept)}, so a resumed run would differ; {place} (docs/extend.md)"
        )


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal to the bit; of what cannot be compared, True."""
    if isinstance(one, torch.Tensor | np.ndarray):
        return type(one) is type(other) and _same_array(_array(one), _array(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(alike(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if one is None or other is None:
        return one is other
    plain = (bool, int, float, str, bytes, set, frozenset, np.generic)
    if isinstance(one, plain) and isinstance(other, plain):
        return bool(one == other) or (one != one and other != other)
    return True


def _array(value: Any) -> np.ndarray[Any, Any]:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _same_array(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
