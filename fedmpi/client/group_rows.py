"""Parameters and moments of a group's clients as rows on a device, and the optimizer's step on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions, SgdOptions
from fedmpi.client.optimizer import clipped_rows
from fedmpi.graphs.transfer import BlockLayout


@dataclass(frozen=True)
class StepNumbers:
    """Numbers of one step of k of a group's n clients.

    Attributes
    ----------
    who : int32 [k]
        Places of the clients that take the step.
    place : int32 [n]
        Place of each of the group's clients among these; 0 for others.
    active : bool [n, 1]
        Who takes the step; the others are not changed.
    keys : int64 [k, streams]
        Of the clients' dropout streams.
    rates, corrections : float32 [k, 1]
        The step's length, and of Adam the correction of its second moment's root.
    """

    who: Tensor
    place: Tensor
    active: Tensor
    keys: Tensor
    rates: Tensor
    corrections: Tensor


@lru_cache
def numbers_layout(acting: int, owners: int, streams: int) -> BlockLayout:
    """Return where the numbers of a step of some of a group's clients lie in a block."""
    return BlockLayout(
        (
            ("who", torch.int32, (acting,)),
            ("place", torch.int32, (owners,)),
            ("active", torch.bool, (owners, 1)),
            ("keys", torch.int64, (acting, streams)),
            ("rates", torch.float32, (acting, 1)),
            ("corrections", torch.float32, (acting, 1)),
        )
    )


@dataclass(frozen=True)
class GroupRows:
    """Parameters, moments and last gradients of k clients: float32 [k, length] each."""

    parameters: Tensor
    mean: Tensor
    square: Tensor
    gradient: Tensor

    @classmethod
    def starting(cls, parameters: Tensor) -> GroupRows:
        """Return parameters without a history."""
        return cls(parameters, *(torch.zeros_like(parameters) for _ in range(3)))

    @property
    def all(self) -> tuple[Tensor, ...]:
        """The four matrices."""
        return self.parameters, self.mean, self.square, self.gradient

    def of(self, numbers: StepNumbers) -> GroupRows:
        """Return the rows of the clients that take a step: these themselves, if all do."""
        if len(numbers.who) == len(self.parameters):
            return self
        return GroupRows(*(each.index_select(0, numbers.who) for each in self.all))

    def take(self, acting: GroupRows, numbers: StepNumbers) -> None:
        """Take back the rows of the clients that took a step."""
        if acting is self:
            return
        for own, new in zip(self.all, acting.all, strict=True):
            own.copy_(torch.where(numbers.active, new.index_select(0, numbers.place), own))


@torch.no_grad()
def step_of_group(options: OptimizerOptions, rows: GroupRows, gradient: Tensor, numbers: StepNumbers) -> None:
    """Take one step of k clients in place, as `fedmpi.client.optimizer.descend`.

    Parameters
    ----------
    options : OptimizerOptions
    rows : GroupRows
        Parameters and moments of the clients; changed in place.
    gradient : float32 [k, length]
    numbers : StepNumbers
        Their rates and corrections.
    """
    parameters, decay = rows.parameters, options.weight_decay
    if options.clip:
        gradient = clipped_rows(gradient, options.clip)
    if isinstance(options, SgdOptions):
        gradient = gradient.add(parameters, alpha=decay)
        if options.momentum:
            gradient = rows.mean.mul_(options.momentum).add_(gradient)
        rows.parameters.sub_(numbers.rates * gradient)
        return
    if options.name == "adamw":
        parameters, decay = parameters * (1 - options.lr * decay), 0.0
    gradient = gradient.add(parameters, alpha=decay)
    rows.mean.lerp_(gradient, 1 - options.beta1)
    rows.square.mul_(options.beta2).addcmul_(gradient, gradient, value=1 - options.beta2)
    moved = rows.square.sqrt().div_(numbers.corrections).add_(options.eps)
    torch.sub(parameters, (numbers.rates * rows.mean).div_(moved), out=rows.parameters)
