"""F1 of predicted classes; defined in docs/metrics.md."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


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
