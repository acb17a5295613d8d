"""Adam, AdamW and SGD on a flat vector: as torch, but for Adam's 1 - beta in single precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.case.optimizers import AdamOptions, AnyAdam, OptimizerOptions, SgdOptions
from fedmpi.kernels.vectors import Descent, adam, heavy_ball, shortened


class AdamState:
    """Moments and step count of one client.

    Attributes
    ----------
    mean, square : float32 [length]
        First and second moment; momentum's velocity is in the first.
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

    def __len__(self) -> int:
        """Return the floats of its state."""
        return 2 * len(self.mean) + 2

    def state(self) -> Tensor:
        """Return moments and step count as float32 [2 length + 2], the count as two halves."""
        halves = torch.tensor([self.steps % 2**20, self.steps // 2**20], dtype=torch.float32)
        return torch.cat([self.mean.cpu(), self.square.cpu(), halves])

    def restore(self, state: Tensor) -> None:
        """Take back what `state` returned."""
        mean, square = state[:-2].view(2, -1)
        self.mean.copy_(mean)
        self.square.copy_(square)
        self.steps = int(state[-2]) + int(state[-1]) * 2**20


def descend(options: OptimizerOptions, state: AdamState, parameters: Tensor, gradient: Tensor) -> None:
    """Take one step of the optimizer in place (Adam: Kingma and Ba 2015, Algorithm 1).

    Weight decay is in the gradient (L2), or for AdamW taken off the parameters first. SGD's momentum is
    that of torch: v = momentum v + gradient, and a step is lr v.

    Parameters
    ----------
    options : OptimizerOptions
    state : AdamState
        Moments and step count, changed in place; SGD counts no steps, and without momentum has no moments.
    parameters, gradient : float32 [length]
        Parameters change in place.
    """
    descent(options, state, parameters, gradient)()


def descent(
    options: OptimizerOptions, state: AdamState, parameters: Tensor, gradient: Tensor
) -> Callable[[], None]:
    """Return what takes a step of the optimizer, as `descend` does, whenever it is called."""
    plain = isinstance(options, SgdOptions) and not options.momentum
    if plain or parameters.device.type != "cpu":
        return partial(_descend_by_torch, options, state, parameters, gradient)
    vectors: list[Any] = [v.numpy() for v in (parameters, gradient, state.mean, state.square)]
    values, given, mean, square = vectors

    def clipped() -> Any:
        return shortened(given, options.clip) if options.clip else given

    decay = np.float32(options.weight_decay)
    if isinstance(options, SgdOptions):
        momentum, lr = np.float32(options.momentum), np.float32(options.lr)
        return lambda: heavy_ball(values, clipped(), mean, decay, momentum, lr)
    adamw = options.name == "adamw"
    shrink = np.float32(1 - options.lr * options.weight_decay)
    decay = np.float32(0) if adamw else decay
    beta1, beta2, eps = map(np.float32, (options.beta1, options.beta2, options.eps))

    def step() -> None:
        state.steps += 1
        gradient = clipped()
        if adamw:
            np.multiply(values, shrink, out=values)
        rate, correction = map(np.float32, rate_and_correction(options, state.steps))
        adam(values, gradient, mean, square, decay, beta1, beta2, rate, correction, eps)

    return step


@torch.no_grad()
def _descend_by_torch(
    options: OptimizerOptions, state: AdamState, parameters: Tensor, gradient: Tensor
) -> None:
    """Take a step by torch: of gradient descent, and on a GPU of any optimizer."""
    decay = options.weight_decay
    if options.clip:
        gradient = _clipped(gradient, options.clip)
    if isinstance(options, SgdOptions):
        step = gradient.add(parameters, alpha=decay)
        if options.momentum:
            step = state.mean.mul_(options.momentum).add_(step)
        parameters.add_(step, alpha=-options.lr)
        return
    state.steps += 1
    if options.name == "adamw":
        parameters.mul_(1 - options.lr * decay)
        decay = 0.0
    rate, correction = rate_and_correction(options, state.steps)
    gradient = gradient.add(parameters, alpha=decay)
    state.mean.lerp_(gradient, 1 - options.beta1)
    state.square.mul_(options.beta2).addcmul_(gradient, gradient, value=1 - options.beta2)
    denominator = (state.square.sqrt() / correction).add_(options.eps)
    parameters.addcdiv_(state.mean, denominator, value=-rate)


def _clipped(gradient: Tensor, bound: float) -> Tensor:
    """Return a gradient [length], scaled down to a 2-norm where it is longer."""
    if gradient.device.type == "cpu":
        return torch.from_numpy(shortened(gradient.numpy(), bound))
    return clipped_rows(gradient[None], bound)[0]


def clipped_rows(gradients: Tensor, bound: float) -> Tensor:
    """Return gradients [k, length], each scaled down to a 2-norm where it is longer."""
    norms = gradients.double().norm(dim=1, keepdim=True)
    return torch.where(norms > bound, gradients * (bound / norms).float(), gradients)


def adam_steps(
    size: int, device: torch.device | str = "cpu", *, lr: float, weight_decay: float
) -> Callable[[Tensor, Tensor], None]:
    """Return what takes the steps of a vector of so many parameters, given it and its gradient."""
    return partial(descend, AdamOptions(lr=lr, weight_decay=weight_decay), AdamState(size, device))


def rate_and_correction(options: AnyAdam, step: int) -> tuple[float, float]:
    """Return the rate and the correction of the second moment's root in a step, counted from 1."""
    return options.lr / (1 - options.beta1**step), math.sqrt(1 - options.beta2**step)


def steps_ahead(options: OptimizerOptions, state: AdamState, count: int) -> Descent:
    """Return the numbers of the next steps, which `state` counts as taken."""
    single = np.float32
    if isinstance(options, SgdOptions):
        rates, decay, momentum = np.full(count, options.lr, single), options.weight_decay, options.momentum
        numbers = single(1), single(decay), single(momentum), single(0), single(1)
        return Descent(True, *numbers, np.float64(options.clip), rates, rates)
    pairs = [rate_and_correction(options, state.steps + step + 1) for step in range(count)]
    rates, corrections = np.array(pairs, single).reshape(-1, 2).T.copy()
    state.steps += count
    inside = options.name == "adam"
    return Descent(
        plain=False,
        shrink=single(1 if inside else 1 - options.lr * options.weight_decay),
        decay=single(options.weight_decay if inside else 0),
        keep_mean=single(options.beta1),
        keep_square=single(options.beta2),
        eps=single(options.eps),
        clip=np.float64(options.clip),
        rates=rates,
        corrections=corrections,
    )
