"""Scores of orders: of rated items within groups; defined in docs/metrics.md."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


def ndcg(groups: Int, gains: Float, predicted: Float, most: int) -> float:
    """Return the mean over groups of the normalised discounted cumulative gain at `most`.

    A group's items are ordered by prediction; item i (from 0) of the first `most` counts its gain over
    ``log2(i + 2)``; that is divided by what the best order gives (Jarvelin and Kekalainen 2002, with the
    gain itself). Items of equal prediction count the mean of their places.

    Parameters
    ----------
    groups : int64 [n]
        Group of each item, such as its user.
    gains : float64 [n]
        At least 0.
    predicted : float64 [n]
        Higher is earlier.
    most : int

    Returns
    -------
    float
        Over groups of two items or more with a gain above 0; NaN where there is none.
    """
    kept = _with_choice(groups)
    number, gains, predicted = _numbered(groups[kept]), gains[kept], predicted[kept]
    found = np.bincount(number, gains * _discounts(number, predicted, most))
    best = np.bincount(number, gains * _discounts(number, gains, most))
    counted = best > 0
    return float((found[counted] / best[counted]).mean()) if counted.any() else float("nan")


def hit_ratio(groups: Int, gains: Float, predicted: Float) -> float:
    """Return the share of groups whose first item by prediction is one of highest gain.

    Of several first items of equal prediction each counts its part. Parameters as of `ndcg`; over groups of
    two items or more that are not all alike, NaN where there is none.
    """
    kept = _with_choice(groups)
    number, gains, predicted = _numbered(groups[kept]), gains[kept], predicted[kept]
    if not len(number):
        return float("nan")
    first, best = _is_highest(number, predicted), _is_highest(number, gains)
    counted = np.bincount(number) > np.bincount(number, best)
    hits = np.bincount(number, first & best) / np.bincount(number, first)
    return float(hits[counted].mean()) if counted.any() else float("nan")


def _with_choice(groups: Int) -> npt.NDArray[np.bool_]:
    """Return which items are in a group of two or more."""
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(sizes[number] > 1)


def _numbered(groups: Int) -> Int:
    return np.unique(groups, return_inverse=True)[1]


def _is_highest(number: Int, values: Float) -> npt.NDArray[np.bool_]:
    highest = np.full(number.max() + 1, -np.inf)
    np.maximum.at(highest, number, values)
    return np.asarray(values == highest[number])


def _discounts(number: Int, values: Float, most: int) -> Float:
    """Return each item's discount: its place's within its group, the mean of those of equal values."""
    order = np.lexsort((-values, number))
    new_group = np.diff(number[order], prepend=-1) != 0
    starts = np.flatnonzero(new_group)
    place = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    discount = np.where(place < most, 1 / np.log2(place + 2), 0.0)
    tie = np.cumsum(new_group | (np.diff(values[order], prepend=np.nan) != 0)) - 1
    shared = np.bincount(tie, discount) / np.bincount(tie) if len(tie) else discount
    found = np.empty(len(order))
    found[order] = shared[tie]
    return found
