"""What outputs of a model mean by the dataset's task: one class, labels with gaps, or numbers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from fedmpi.models.outcome import Outcome
from fedmpi.objectives import supervised


class Task(Protocol):
    """Loss of a batch, and what is noted of each of its graphs."""

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss over the batch, a scalar."""

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return each graph's loss, in float64, and what it is scored by."""


class Classification:
    """One class per graph: cross-entropy, hits."""

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean negative log-likelihood."""
        return supervised.loss(outputs, labels)

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return losses and right predictions."""
        return supervised.outcome(outputs, labels)


class MultiTask:
    """Several yes-or-no labels, NaN where one is missing: binary cross-entropy over the labels there are.

    As FedGraphNN's trainers: the sum over labelled pairs of graph and task, divided by their number,
    so a graph with few labels counts little.
    """

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over the labels of the batch; outputs and labels [B, T]."""
        known = ~labels.isnan()
        return cross_entropy(outputs[known], labels[known])

    @torch.no_grad()
    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return each graph's sum over its labels, their number, and the logits as scores."""
        known = ~labels.isnan()
        filled = torch.where(known, labels, 0.0).double()
        nats = cross_entropy(outputs.double(), filled, reduction="none") * known
        return _outcome(nats.sum(dim=1), known.sum(dim=1), outputs)


class Regression:
    """One or more numbers: squared error, of labels that may be standardised.

    Parameters
    ----------
    center, scale : float64 [T]
        The model is trained on ``(label - center) / scale``; predictions are in the labels' own units.
    """

    def __init__(self, center: npt.NDArray[np.float64], scale: npt.NDArray[np.float64]) -> None:
        self._center, self._scale = torch.from_numpy(center), torch.from_numpy(scale)

    def _wanted(self, labels: Tensor) -> Tensor:
        return (labels.double() - self._center.to(labels.device)) / self._scale.to(labels.device)

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean squared error over the labels of the batch; outputs and labels [B, T]."""
        known = ~labels.isnan()
        return (outputs[known] - self._wanted(labels)[known].float()).square().mean()

    @torch.no_grad()
    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return each graph's sum of squares over its labels, their number, and the predictions as scores."""
        known = ~labels.isnan()
        error = torch.where(known, outputs.double() - self._wanted(labels), 0.0)
        predicted = outputs.double() * self._scale.to(labels.device) + self._center.to(labels.device)
        return _outcome(error.square().sum(dim=1), known.sum(dim=1), predicted)


def _outcome(losses: Tensor, weights: Tensor, scores: Tensor) -> Outcome:
    found, counted = losses.cpu().numpy(), weights.cpu().numpy()
    return Outcome(found, np.zeros(len(found), np.uint8), counted, scores.float().cpu().numpy())
