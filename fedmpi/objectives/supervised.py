"""Graph classification: cross-entropy of the head's logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Scores:
    """Sum of the graphs' losses, and which graphs are classified rightly, bool [B]."""

    loss_sum: float
    hits: Tensor

    @property
    def correct(self) -> int:
        """Number of graphs classified rightly."""
        return int(self.hits.sum())


def loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean negative log-likelihood over the batch, a scalar."""
    return cross_entropy(logits, labels)


@torch.no_grad()
def scores(logits: Tensor, labels: Tensor) -> Scores:
    """Return loss sum (float64) and right predictions of logits [B, C] against labels [B]."""
    total = cross_entropy(logits.double(), labels, reduction="sum")
    return Scores(float(total), logits.argmax(dim=1) == labels)
