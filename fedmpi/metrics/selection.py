"""Which round's value counts, client by client; of a value of the whole run, in the one column that it is.

Values are such that higher is better. Only `as_published` looks at test data to choose, as GCFL's released
code does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


def last_rounds(values: Float) -> Int:
    """Return each client's last evaluated round [n], 0-based; -1 if it never was.

    Parameters
    ----------
    values : float64 [R, n]
        NaN where a client was not evaluated.
    """
    evaluated = ~np.isnan(values)
    if not len(values):
        return np.full(values.shape[1], -1, np.int64)
    last = len(values) - 1 - np.argmax(evaluated[::-1], axis=0)
    return np.where(evaluated.any(axis=0), last, -1)


def best_rounds(values: Float, loss: Float | None = None) -> Int:
    """Return each client's best round [n], 0-based; -1 if it never was evaluated.

    Highest value, then lowest loss, then the earliest round.

    Parameters
    ----------
    values, loss : float64 [R, n]
        On validation data; NaN where a client was not evaluated.
    """
    if not len(values):
        return np.full(values.shape[1], -1, np.int64)
    loss = np.zeros_like(values) if loss is None else loss
    known = np.where(np.isnan(values), -np.inf, values)
    top = known == known.max(axis=0)
    loss = np.where(top, np.where(np.isnan(loss), np.finfo(np.float64).max, loss), np.inf)
    return np.where(~np.isnan(values).all(axis=0), np.argmin(loss, axis=0), -1)


def at_rounds(values: Float, rounds: Int) -> Float:
    """Return each client's value [n] at its round; NaN for round -1."""
    if not len(values):
        return np.full(len(rounds), np.nan)
    picked = values[np.maximum(rounds, 0), np.arange(len(rounds))]
    return np.where(rounds >= 0, picked, np.nan)


def as_published(test: Float, group: Int) -> Float:
    """Return each client's value [n] as GCFL's released code reports accuracies.

    The largest test value among the last round's and those of the round before
    each split of the client's own cluster: a maximum over test data. Without
    splits it is the last round's.

    Parameters
    ----------
    test : float64 [R, n]
    group : int [R, n]
        Cluster of each client after each round.
    """
    best = at_rounds(test, last_rounds(test))
    for number in range(1, len(group)):
        split = np.unique(group[number - 1][group[number] != group[number - 1]])
        members = np.isin(group[number - 1], split)
        best = np.where(members, np.fmax(best, test[number - 1]), best)
    return best
