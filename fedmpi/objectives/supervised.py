"""Graph classification: cross-entropy of the head's logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedmpi.models.outcome import Outcome


def loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean negative log-likelihood over the batch, a scalar."""
    return cross_entropy(logits, labels)


@torch.no_grad()
def outcome(logits: Tensor, labels: Tensor) -> Outcome:
    """Return losses (float64) and right predictions of logits [B, C] against labels [B]."""
    losses = cross_entropy(logits.double(), labels, reduction="none")
    hits = (logits.argmax(dim=1) == labels).cpu().numpy().astype(np.uint8)
    return Outcome(losses.cpu().numpy(), hits)
