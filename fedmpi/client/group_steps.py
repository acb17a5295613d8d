"""The steps of a group of clients on a device, and what they need from the host."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions, SgdOptions
from fedmpi.client.optimizer import clipped_rows, rate_and_correction
from fedmpi.client.state import ClientState
from fedmpi.graphs.transfer import BlockLayout
from fedmpi.kernels.captured import Captured
from fedmpi.kernels.grouped_batches import GroupBatch, HostBatch
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.grouped_network import GroupedNetwork
from fedmpi.models.dropout import DropoutStreams


@dataclass(frozen=True)
class StepNumbers:
    """Numbers of one step of k of a group's n clients.

    Attributes
    ----------
    block : int64 [*]
        Memory of the arrays.
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

    block: Tensor
    who: Tensor
    place: Tensor
    active: Tensor
    keys: Tensor
    rates: Tensor
    corrections: Tensor


@dataclass(frozen=True)
class HostNumbers:
    """The same before they are sent.

    Attributes
    ----------
    layout : BlockLayout
    block : int64 [*]
        In host memory.
    """

    layout: BlockLayout
    block: Tensor

    def sent(self, device: torch.device) -> StepNumbers:
        """Return the numbers on a device."""
        block = self.block.to(device, non_blocking=True)
        return StepNumbers(block=block, **self.layout.views(block))


@dataclass(frozen=True)
class Masks:
    """Dropout of a round: the run's seed, the round, and how many streams a step has."""

    seed: int
    round: int
    streams: int

    def keys(self, client: int, step: int) -> list[int]:
        """Return the keys of a client's streams in one of its steps."""
        return DropoutStreams(self.seed, client, self.round, step).keys(self.streams)


def step_numbers(
    options: OptimizerOptions,
    owners: Sequence[ClientState],
    steps: Sequence[Sequence[int]],
    masks: Masks,
    device: torch.device,
) -> list[HostNumbers]:
    """Return the numbers of a round's steps; the owners count the steps as taken.

    Parameters
    ----------
    options : OptimizerOptions
    owners : sequence of ClientState
        The group's clients.
    steps : sequence [steps] of sequences of int
        Places of those who take each step.
    masks : Masks
    device : torch.device
        Where the numbers will go.
    """
    taken, found = [0] * len(owners), []
    for who in steps:
        layout = _layout(len(who), len(owners), masks.streams)
        block = layout.on_host(device)
        arrays = layout.arrays(block)
        arrays["who"][:], arrays["place"][:], arrays["active"][:] = who, 0, False
        for number, place in enumerate(who):
            owner = owners[place]
            owner.adam.steps += 1
            arrays["place"][place], arrays["active"][place] = number, True
            arrays["keys"][number] = masks.keys(owner.id, taken[place])
            numbers = options.lr, 1.0
            if not isinstance(options, SgdOptions):
                numbers = rate_and_correction(options, owner.adam.steps)
            arrays["rates"][number], arrays["corrections"][number] = numbers
            taken[place] += 1
        found.append(HostNumbers(layout, block))
    return found


@lru_cache
def _layout(acting: int, owners: int, streams: int) -> BlockLayout:
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


Changed = Callable[[Tensor, Tensor, Tensor], None]
"""Changes the gradient [k, length] of parameters [k, length], of clients by their places [k]."""

_KEPT_REPLAYS = 128
"""Captured steps that a group keeps, of batches of other sizes each."""

Capture = Callable[[Callable[[], tuple[Tensor, ...]]], Captured]
"""Makes an action one that can be replayed."""


_Replay = tuple[GroupBatch, StepNumbers, Captured]
"""A captured step with the memory from which it reads its batch and numbers."""


@dataclass(eq=False)
class Steps:
    """Forward, backward and optimizer of k clients at once; nothing in a step waits for the device.

    Parameters
    ----------
    network : GroupedNetwork
    graphs : GroupGraphs
        What the clients train on.
    rows : GroupRows
    options : OptimizerOptions
    changed : callable, optional
        Of algorithms with a `change`.
    capture : callable, optional
        How a step is captured; None: every step is taken anew.
    """

    network: GroupedNetwork
    graphs: GroupGraphs
    rows: GroupRows
    options: OptimizerOptions
    changed: Changed | None
    capture: Capture | None
    _replays: OrderedDict[object, _Replay] = field(default_factory=OrderedDict)

    def take(self, batch: HostBatch, numbers: HostNumbers) -> tuple[Tensor, Tensor]:
        """Take a step; return the graphs' losses and what they are scored by: `GroupedNetwork.judge`.

        A captured step is replayed for other batches of the same sizes.
        """
        if self.capture is None:
            return self._take(self.graphs.sent(batch), numbers.sent(self.rows.parameters.device))
        key = (batch.sizes, None if batch.resident is None else id(batch.resident))
        if key not in self._replays:
            if len(self._replays) == _KEPT_REPLAYS:
                self._replays.popitem(last=False)
            self._replays[key] = self._captured(self.capture, batch, numbers)
        self._replays.move_to_end(key)
        own_batch, own_numbers, captured = self._replays[key]
        if batch.resident is None:
            own_batch.block.copy_(batch.block, non_blocking=True)
        own_numbers.block.copy_(numbers.block, non_blocking=True)
        nats, found = captured.run()
        return nats, found

    def _captured(self, capture: Capture, batch: HostBatch, numbers: HostNumbers) -> _Replay:
        """Capture a step. Capturing takes it once; afterwards the rows are as they were."""
        own_batch, own_numbers = self.graphs.sent(batch), numbers.sent(self.rows.parameters.device)
        before = [each.clone() for each in self.rows.all]
        captured = capture(lambda: self._take(own_batch, own_numbers))
        for row, old in zip(self.rows.all, before, strict=True):
            row.copy_(old)
        return own_batch, own_numbers, captured

    def _take(self, batch: GroupBatch, numbers: StepNumbers) -> tuple[Tensor, Tensor]:
        rows = self.rows.of(numbers)
        leaf = rows.parameters.detach().requires_grad_()
        nats, found = self.network.judge(self.network.logits(leaf, batch, numbers.keys), batch)
        (gradient,) = torch.autograd.grad((nats * batch.weights).sum(), leaf)
        rows.gradient.copy_(gradient)
        if self.changed is not None:
            self.changed(rows.parameters, numbers.who, gradient)
        step_of_group(self.options, rows, gradient, numbers)
        self.rows.take(rows, numbers)
        return nats.detach(), found
