"""Scores of classes, of yes-or-no tasks with missing labels, of regression; defined in docs/metrics.md."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


def roc_auc(labels: Float, scores: npt.NDArray[np.floating]) -> Float:
    """Return the area under the receiver operating characteristic of each task.

    The share of pairs of a positive and a negative graph that the score puts in the right order,
    ties counting half (Fawcett 2006).

    Parameters
    ----------
    labels : float64 [n, T]
        1, 0, or NaN where the label is missing; such a graph does not count for that task.
    scores : float [n, T]
        Higher for positive.

    Returns
    -------
    float64 [T]
        NaN where the labelled graphs are all of one class.
    """
    by_task = np.ascontiguousarray(scores.T)
    order = by_task.argsort(axis=1) + labels.shape[0] * np.arange(labels.shape[1])[:, None]
    sorted_scores, wanted = by_task.take(order), np.ascontiguousarray(labels.T).take(order)
    positive = wanted == 1
    negative = ~np.isnan(wanted) & ~positive
    through = negative.cumsum(axis=1)
    below, equal = through, _equals(sorted_scores)
    if equal.any():
        below, through = _over_ties(through - negative, through, equal)
    twice = np.where(positive, below + through, 0).sum(axis=1)
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    with np.errstate(invalid="ignore"):
        found: Float = twice / (2 * pairs)  # twice the pairs in order, a whole number
    return found


def average_precision(labels: Float, scores: npt.NDArray[np.floating]) -> Float:
    """Return the area under each task's precision-recall curve, float64 [T], as average precision.

    The sum over the distinct scores, from the highest, of precision times the gain in recall (no
    interpolation); arguments and missing values as for `roc_auc`.
    """
    return _by_task(_average_precision, labels, scores)


def rmse(labels: Float, values: npt.NDArray[np.floating]) -> Float:
    """Return the root of the mean squared error of each task, float64 [T]; NaN where no label is."""
    return np.sqrt(_mean(np.square(labels - values.astype(np.float64)), labels))


def mse(labels: Float, values: npt.NDArray[np.floating]) -> Float:
    """Return the mean squared error of each task, float64 [T]; NaN where no label is."""
    return _mean(np.square(labels - values.astype(np.float64)), labels)


def mae(labels: Float, values: npt.NDArray[np.floating]) -> Float:
    """Return the mean absolute error of each task, float64 [T]; NaN where no label is."""
    return _mean(np.abs(labels - values.astype(np.float64)), labels)


def r2(labels: Float, values: npt.NDArray[np.floating]) -> Float:
    """Return the coefficient of determination of each task, float64 [T].

    One minus the squared error over that of the mean of these labels; NaN where they are all equal.
    """
    error = _mean(np.square(labels - values.astype(np.float64)), labels)
    spread = _mean(np.square(labels - _mean(labels, labels)), labels)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, 1 - error / spread, np.nan)


def f1(
    labels: npt.NDArray[np.integer], predicted: npt.NDArray[np.integer], classes: int
) -> tuple[float, float]:
    """Return micro F1 and macro F1; NaN over no example.

    Micro F1 sums true and false positives over classes: with one class per example it is the accuracy.
    Macro F1 is the mean over the classes that occur among labels or predictions.

    Parameters
    ----------
    labels, predicted : int [n]
        From 0 to `classes` - 1.
    classes : int
    """
    if not len(labels):
        return math.nan, math.nan
    right = np.bincount(labels[labels == predicted], minlength=classes)
    named = np.bincount(labels, minlength=classes) + np.bincount(predicted, minlength=classes)
    occurs = named > 0
    return float(right.sum() / len(labels)), float((2 * right[occurs] / named[occurs]).mean())


def mean_over_tasks(values: Float) -> float:
    """Return the mean over the tasks that have a value; NaN if none has."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else float("nan")


def _by_task(
    score: Callable[[npt.NDArray[np.bool_], npt.NDArray[np.floating]], float],
    labels: Float,
    scores: npt.NDArray[np.floating],
) -> Float:
    found = np.full(labels.shape[1], np.nan)
    for task in range(labels.shape[1]):
        known = ~np.isnan(labels[:, task])
        positive = labels[known, task] == 1
        if positive.any() and not positive.all():
            found[task] = score(positive, scores[known, task])
    return found


def _equals(ordered: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
    """Return which numbers of ascending rows equal the next one, bool [T, n - 1]; NaN equals NaN."""
    one, other = ordered[:, :-1], ordered[:, 1:]
    found: npt.NDArray[np.bool_] = np.equal(one, other) | (np.isnan(one) & np.isnan(other))
    return found


def _over_ties(below: Int, through: Int, equal: npt.NDArray[np.bool_]) -> tuple[Int, Int]:
    """Return numbers [T, n] by place as of the first and the last place of equal scores."""
    ends, count = np.ones((len(below), 1), np.bool_), below.shape[1]
    first = np.where(np.hstack([ends, ~equal]), np.arange(count), 0)
    last = np.where(np.hstack([~equal, ends]), np.arange(count), count)
    first = np.maximum.accumulate(first, axis=1)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    return np.take_along_axis(below, first, axis=1), np.take_along_axis(through, last, axis=1)


def _average_precision(positive: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating]) -> float:
    _, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    hits = np.bincount(place, weights=positive)
    return float(np.sum(np.cumsum(hits) / np.cumsum(counts) * hits) / hits.sum())


def _mean(values: Float, labels: Float) -> Float:
    """Return the mean of each column over the rows whose label is there."""
    known = ~np.isnan(labels)
    counts = known.sum(axis=0)
    return np.where(counts > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)
