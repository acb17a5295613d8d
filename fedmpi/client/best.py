"""The model of a client's best round by validation."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from fedmpi.models.outcome import Outcome

_HEADER = 5
"""Floats of value and loss, two each, and of the round."""


class BestModel:
    """Parameters as they were evaluated in the best round, as `fedmpi.metrics.selection.best_rounds` has it.

    That is the round of the highest accuracy, then of the lowest loss, then the first.

    Attributes
    ----------
    parameters : float32 [length]
    round : int
        0-based; -1 before the first evaluation.
    """

    def __init__(self, length: int, device: torch.device | str = "cpu") -> None:
        self.parameters = torch.zeros(length, device=device)
        self.round = -1
        self._accuracy, self._loss = -math.inf, math.inf

    def consider(self, round: int, validation: Outcome, parameters: Callable[[], Tensor]) -> None:
        """Keep what `parameters` returns, if the round is better than all before; NaN is no score."""
        accuracy, loss = validation.accuracy, validation.mean_loss
        if accuracy > self._accuracy or (accuracy == self._accuracy and loss < self._loss):
            self.round, self._accuracy, self._loss = round, accuracy, loss
            self.parameters.copy_(parameters())

    def __len__(self) -> int:
        """Return the floats of its state."""
        return _HEADER + len(self.parameters)

    def state(self) -> Tensor:
        """Return scores, to the bit, round and parameters as float32 [length + 5]."""
        scores = torch.tensor([self._accuracy, self._loss], dtype=torch.float64).view(torch.float32)
        return torch.cat([scores, torch.tensor([float(self.round)]), self.parameters.cpu()])

    def restore(self, state: Tensor) -> None:
        """Take back what `state` returned."""
        self._accuracy, self._loss = state[: _HEADER - 1].clone().view(torch.float64).tolist()
        self.round = int(state[_HEADER - 1])
        self.parameters.copy_(state[_HEADER:])
