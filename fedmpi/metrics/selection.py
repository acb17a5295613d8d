"""Which round's accuracy counts, client by client.

Only `as_published` looks at test data to choose, as GCFL's released code does.
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


def best_rounds(val_accuracy: Float, val_loss: Float) -> Int:
    """Return each client's best round by validation [n], 0-based; -1 if it never was evaluated.

    Highest validation accuracy, then lowest validation loss, then the earliest round.

    Parameters
    ----------
    val_accuracy, val_loss : float64 [R, n]
        NaN where a client was not evaluated.
    """
    if not len(val_accuracy):
        return np.full(val_accuracy.shape[1], -1, np.int64)
    accuracy = np.where(np.isnan(val_accuracy), -np.inf, val_accuracy)
    top = accuracy == accuracy.max(axis=0)
    loss = np.where(top, np.where(np.isnan(val_loss), np.finfo(np.float64).max, val_loss), np.inf)
    return np.where(~np.isnan(val_accuracy).all(axis=0), np.argmin(loss, axis=0), -1)


def at_rounds(values: Float, rounds: Int) -> Float:
    """Return each client's value [n] at its round; NaN for round -1."""
    if not len(values):
        return np.full(len(rounds), np.nan)
    picked = values[np.maximum(rounds, 0), np.arange(len(rounds))]
    return np.where(rounds >= 0, picked, np.nan)


def as_published(test_accuracy: Float, group: Int) -> Float:
    """Return each client's accuracy [n] as GCFL's released code reports it.

    The largest test accuracy among the last round's and those of the round before
    each split of the client's own cluster: a maximum over test data. Without
    splits it is the last round's.

    Parameters
    ----------
    test_accuracy : float64 [R, n]
    group : int [R, n]
        Cluster of each client after each round.
    """
    best = at_rounds(test_accuracy, last_rounds(test_accuracy))
    for number in range(1, len(group)):
        split = np.unique(group[number - 1][group[number] != group[number - 1]])
        members = np.isin(group[number - 1], split)
        best = np.where(members, np.fmax(best, test_accuracy[number - 1]), best)
    return best
