"""Losses of the examples of several clients at once: against a class, binary labels with gaps, or numbers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fedmpi.kernels.targets import CLASSES, LABELS


def losses(kind: int, outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of every example, the sum over its labels, [k, B], in the type of the outputs.

    Parameters
    ----------
    kind : int
        `CLASSES`, `LABELS` or `NUMBERS`.
    outputs : float [k, B, C]
    labels : int64 [k, B] of classes, else float64 [k, B, C]
        NaN where one is missing.
    """
    if kind == CLASSES:
        flat = cross_entropy(outputs.flatten(0, 1), labels.flatten(), reduction="none")
        return flat.view(labels.shape)
    missing = labels.isnan()
    wanted = labels.masked_fill(missing, 0.0).to(outputs.dtype)
    if kind == LABELS:
        found = binary_cross_entropy_with_logits(outputs, wanted, reduction="none")
    else:
        found = (outputs - wanted).square()
    return found.masked_fill(missing, 0.0).sum(dim=2)


def predictions(kind: int, outputs: Tensor, labels: Tensor, *, named: bool = False) -> Tensor:
    """Return what scores examples: which classes are right, bool [k, B], or outputs, float32 [k, B, C].

    With `named`, predicted classes, int16 [k, B]: c where class c is right, -1 - c where it is wrong.
    """
    if kind != CLASSES:
        return outputs.detach().float()
    found = outputs.argmax(dim=2)
    right = torch.eq(found, labels)
    return torch.where(right, found, ~found).to(torch.int16) if named else right
