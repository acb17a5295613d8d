"""Losses of outputs and their gradients: against a class, binary labels with gaps, or numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.products import Floats

CLASSES, LABELS, NUMBERS = range(3)
"""Kinds of targets: graph classification, binary labels, regression; NaN where one is missing."""

Targets = npt.NDArray[np.float64]


@compiled
def judge(kind: int, targets: Targets, outputs: int, share: float, logits: Floats, gradient: Floats) -> float:
    """Return an example's loss, the sum over its labels, and set the gradient of its logits.

    Parameters
    ----------
    kind : int
        `CLASSES` (negative log-likelihood), `LABELS` (binary cross-entropy of the labels that are not
        NaN) or `NUMBERS` (squared error).
    targets : float64 [T]
    outputs : int
        Number of logits that count; the others are padding.
    share : float
        Factor of the gradient: 1 / labels of the batch.
    logits, gradient : float32 [>= outputs]
    """
    total = 0.0
    if kind == CLASSES:
        return _judge_class(int(targets[0]), outputs, share, logits, gradient)
    for task in range(len(targets)):
        wanted, logit = targets[task], np.float64(logits[task])
        if np.isnan(wanted):
            gradient[task] = np.float32(0.0)
        elif kind == LABELS:
            small = np.exp(-abs(logit))
            total += (logit if logit > 0.0 else 0.0) - logit * wanted + np.log1p(small)
            likely = (1.0 if logit >= 0.0 else small) / (1.0 + small)
            gradient[task] = np.float32((likely - wanted) * share)
        else:
            error = logit - wanted
            total += error * error
            gradient[task] = np.float32(2.0 * error * share)
    return total


@compiled
def _judge_class(label: int, classes: int, share: float, logits: Floats, gradient: Floats) -> float:
    top, norm = np.float64(logits[0]), 0.0
    for c in range(1, classes):
        top = max(top, np.float64(logits[c]))
    for c in range(classes):
        norm += np.exp(np.float64(logits[c]) - top)
    for c in range(classes):
        likely = np.exp(np.float64(logits[c]) - top) / norm
        gradient[c] = np.float32((likely - (1.0 if c == label else 0.0)) * share)
    loss: float = np.log(norm) + top - np.float64(logits[label])
    return loss


@compiled
def judge_rows(
    kind: int, targets: Targets, outputs: int, logits: Floats, gradient: Floats, losses: Targets
) -> None:
    """Set the losses of B examples, and the gradient of their mean over the labels that are not NaN.

    Parameters
    ----------
    kind, outputs : int
        As for `judge`.
    targets : float64 [B, T]
    logits, gradient : float32 [B, >= outputs]
    losses : float64 [B]
    """
    labels = 0
    for b in range(len(targets)):
        for wanted in targets[b]:
            labels += 0 if np.isnan(wanted) else 1
    share = 1.0 / max(labels, 1)
    for b in range(len(targets)):
        losses[b] = judge(kind, targets[b], outputs, share, logits[b], gradient[b])
