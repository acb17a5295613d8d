"""Adam on a flat vector, to rounding what ``torch.optim.Adam`` does on its pieces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.engine.case import OptimizerOptions
from fedmpi.models.vectors import adam


class AdamState:
    """Moments and step count of one client.

    Attributes
    ----------
    mean, square : float32 [length]
        First and second moment.
    steps : int
        Steps taken since the moments were zero.
    """

    def __init__(self, length: int, device: torch.device | str = "cpu") -> None:
        self.mean = torch.zeros(length, device=device)
        self.square = torch.zeros(length, device=device)
        self.steps = 0

    def reset(self) -> None:
        """Forget everything."""
        self.mean.zero_()
        self.square.zero_()
        self.steps = 0


@torch.no_grad()
def adam_step(options: OptimizerOptions, state: AdamState, parameters: Tensor, gradient: Tensor) -> None:
    """Take one step in place (Kingma and Ba 2015, Algorithm 1, with L2 weight decay in the gradient)."""
    state.steps += 1
    rate = options.lr / (1 - options.beta1**state.steps)
    correction = math.sqrt(1 - options.beta2**state.steps)
    if parameters.device.type == "cpu":
        vectors: list[Any] = [v.numpy() for v in (parameters, gradient, state.mean, state.square)]
        numbers = (options.weight_decay, options.beta1, options.beta2, rate, correction, options.eps)
        adam(*vectors, *map(np.float32, numbers))
        return
    gradient = gradient.add(parameters, alpha=options.weight_decay)
    state.mean.lerp_(gradient, 1 - options.beta1)
    state.square.mul_(options.beta2).addcmul_(gradient, gradient, value=1 - options.beta2)
    denominator = (state.square.sqrt() / correction).add_(options.eps)
    parameters.addcdiv_(state.mean, denominator, value=-rate)
