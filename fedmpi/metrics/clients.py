"""From one value per client to one figure, and its spread over seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]


def mean(values: Float) -> float:
    """Return the unweighted mean over the clients that have a value; NaN if none has."""
    present = _present(values)
    return float(present.mean()) if len(present) else math.nan


def mean_by_round(values: npt.NDArray[Any]) -> Float:
    """Return the mean over the clients evaluated in each round [R]; NaN where none was.

    Parameters
    ----------
    values : [R, n], or [R] where it is one value of all clients
        NaN where a client was not evaluated.
    """
    if values.ndim == 1:
        return np.asarray(values, np.float64)
    evaluated = ~np.isnan(values)
    count = evaluated.sum(axis=1)
    total = np.where(evaluated, values, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def worst(values: Float, sign: int = 1) -> tuple[int, float]:
    """Return index and value of the client with the lowest value; (-1, NaN) if none has one.

    The highest where `sign` is -1: where lower values are better.
    """
    if not len(_present(values)):
        return -1, math.nan
    index = int(np.nanargmin(sign * values))
    return index, float(values[index])


def lowest_decile(values: Float, sign: int = 1) -> float:
    """Return the mean over the ``ceil(n / 10)`` clients with the worst values; `sign` as for `worst`."""
    present = np.sort(sign * _present(values))
    return float(sign * present[: math.ceil(len(present) / 10)].mean()) if len(present) else math.nan


def std_over_seeds(values: Float) -> float:
    """Return the mean over clients of each client's standard deviation (ddof 1) over seeds.

    Parameters
    ----------
    values : float64 [S, n]
        One row per seed, S >= 2.
    """
    return float(np.std(values, axis=0, ddof=1).mean())


def std_of_average(values: Float) -> float:
    """Return the standard deviation (ddof 1) over seeds of the mean over clients; values [S, n], S >= 2."""
    return float(np.std(values.mean(axis=1), ddof=1))


def subset_accuracy(
    correct: npt.NDArray[np.uint8], pointers: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> Float:
    """Return each client's accuracy over some of its test graphs by round, float64 [R, n]; NaN where none is.

    Parameters
    ----------
    correct : uint8 [R, T]
        1 where a test graph is classified rightly; client i's are ``pointers[i] .. pointers[i + 1] - 1``.
    pointers : int64 [n + 1]
    chosen : bool [T]
        The test graphs that count.
    """
    sums = np.zeros((len(correct), correct.shape[1] + 1), np.int64)
    np.cumsum(correct * chosen, axis=1, out=sums[:, 1:])
    right = np.diff(sums[:, pointers], axis=1)
    counts = np.diff(np.concatenate([[0], np.cumsum(chosen)])[pointers])
    return np.where(counts > 0, right / np.maximum(counts, 1), np.nan)


def _present(values: Float) -> Float:
    return values[~np.isnan(values)]


def splits(group: npt.NDArray[np.int_]) -> list[tuple[int, int]]:
    """Return the splits of clusters: round (0-based) and size of the smaller side.

    Parameters
    ----------
    group : int [R, n]
        Cluster of each client after each round.
    """
    found: list[tuple[int, int]] = []
    for number in range(1, len(group)):
        for origin in np.unique(group[number - 1][group[number] != group[number - 1]]):
            sides = np.unique(group[number][group[number - 1] == origin], return_counts=True)[1]
            found.append((number, int(sides.min())))
    return found
