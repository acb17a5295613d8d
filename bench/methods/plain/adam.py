"""Adam as fedmpi's steps take it: torch's, but for 1 - beta in single precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor


class SingleAdam(torch.optim.Optimizer):
    """Adam (Kingma and Ba 2015, Algorithm 1) with beta 0.9 and 0.999.

    In single precision 1 - 0.999 is 4.7e-5 of its value larger, and so is the second moment.

    Parameters
    ----------
    params : iterable of Tensor
    lr, weight_decay, eps : float
    """

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float, eps: float) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "eps": eps})
        self._steps = 0

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step."""
        self._steps += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, group)

    def _step(self, parameter: Tensor, group: dict[str, Any]) -> None:
        one, beta1, beta2 = np.float32(1), np.float32(0.9), np.float32(0.999)
        moments = self.state[parameter]
        if not moments:
            moments |= {"mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
        gradient = parameter.grad + group["weight_decay"] * parameter
        moments["mean"] += float(one - beta1) * (gradient - moments["mean"])
        moments["square"].mul_(float(beta2)).add_(float(one - beta2) * (gradient * gradient))
        correction = math.sqrt(1 - 0.999**self._steps)
        root = moments["square"].sqrt() / correction + group["eps"]
        parameter -= group["lr"] / (1 - 0.9**self._steps) * moments["mean"] / root
