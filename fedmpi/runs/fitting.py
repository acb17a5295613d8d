"""Checks that a checkpoint's arrays belong to this run; others are passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.client.state import StateLayout
from fedmpi.store.checkpoint import Unfit

Arrays = Mapping[str, npt.NDArray[Any]]

_STEPS_BASE = 2**20
"""A step count is two floats, each a whole number below this (`Client.state`)."""


def refuse_unfit_server(arrays: Arrays, fresh: Arrays) -> None:
    """Check the server's arrays before any of them is used.

    Parameters
    ----------
    arrays : mapping
        Of the checkpoint.
    fresh : mapping
        What the server's state is before the first round, with ``group`` int64 [clients].

    Raises
    ------
    Unfit
        An array is missing, has another name, type or shape, or impossible values.
    """
    if unequal := sorted(set(arrays) ^ set(fresh)):
        raise Unfit(f"it has other arrays than this run's ({', '.join(unequal)})")
    for name, array in fresh.items():
        if (arrays[name].dtype, arrays[name].shape) != (array.dtype, array.shape):
            raise Unfit(
                f"its array {name} is {arrays[name].dtype} {list(arrays[name].shape)}, "
                f"this run's {array.dtype} {list(array.shape)}"
            )
        _refuse_impossible_numbers(name, arrays[name], array)
    if not ((arrays["group"] >= 0) & (arrays["group"] < len(fresh["group"]))).all():
        raise Unfit("its groups have numbers outside of 0 to the number of clients less 1")


def refuse_unfit_states(
    states: Mapping[int, npt.NDArray[np.float32]], layouts: Mapping[int, StateLayout]
) -> None:
    """Check clients' states before any of them is used.

    Parameters
    ----------
    states : mapping of client to array
    layouts : mapping of client to StateLayout
        As this run has them.

    Raises
    ------
    Unfit
        A state has another type or size, or impossible values.
    """
    for client, state in states.items():
        layout = layouts[client]
        if state.dtype != np.float32 or state.shape != (layout.size,):
            raise Unfit(
                f"the state of client {client} is {state.dtype} {list(state.shape)}, "
                f"this run's float32 [{layout.size}]"
            )
        if not np.isfinite(state[: layout.parameters]).all():
            raise Unfit(f"parameters of client {client} are not finite")
        steps = np.array([state[place : place + 2] for place in layout.steps])
        if not ((steps >= 0) & (steps < _STEPS_BASE) & (steps == np.floor(steps))).all():
            raise Unfit(f"the step count of client {client} is no whole number")


def _refuse_impossible_numbers(name: str, values: npt.NDArray[Any], fresh: npt.NDArray[Any]) -> None:
    """Refuse infinities, and NaN where the array has none before the first round."""
    if values.dtype.kind != "f":
        return
    if np.isinf(values).any() or (np.isnan(values) & ~np.isnan(fresh)).any():
        raise Unfit(f"its array {name} is not finite")
