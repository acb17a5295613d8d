"""The steps of a group of clients on a device, and what they need from the host, sent before the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedmpi.case.schema import AnyAdam
from fedmpi.engine.optimizer import AdamState, rate_and_correction
from fedmpi.graphs.transfer import sent
from fedmpi.kernels.grouped_gin import GroupBatch, GroupedGin, losses
from fedmpi.models.dropout import DropoutStreams


class HasAdam(Protocol):
    """A client by its id, whose optimizer state lies in rows of a group's matrices."""

    id: int
    adam: AdamState


@dataclass(frozen=True)
class StepNumbers:
    """Numbers of one step of k clients.

    Attributes
    ----------
    keys : int64 [k, streams]
        Of the clients' dropout streams.
    active : bool [k, 1]
        Clients that take the step; the others are not changed.
    rates, corrections : float32 [k, 1]
        Adam's rate, and the correction of its second moment's root.
    """

    keys: Tensor
    active: Tensor
    rates: Tensor
    corrections: Tensor

    def clone(self) -> StepNumbers:
        """Return a copy."""
        return StepNumbers(*(each.clone() for each in self._all))

    def take(self, others: StepNumbers) -> None:
        """Become equal to another step's, in place."""
        for own, other in zip(self._all, others._all, strict=True):
            own.copy_(other)

    @property
    def _all(self) -> tuple[Tensor, ...]:
        return self.keys, self.active, self.rates, self.corrections


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
    options: AnyAdam,
    owners: Sequence[HasAdam],
    active: Sequence[Sequence[bool]],
    masks: Masks,
    device: torch.device,
) -> list[StepNumbers]:
    """Return the numbers of a round's steps, all sent at once; the owners count the steps as taken.

    Parameters
    ----------
    options : AdamOptions or AdamWOptions
    owners : sequence of HasAdam
    active : sequence [steps] of sequences of bool [k]
        Who takes each step.
    masks : Masks
    device : torch.device
    """
    taken = np.cumsum(np.vstack([np.zeros(len(owners), int), active]), axis=0)
    keys = [
        [masks.keys(owner.id, int(n)) for owner, n in zip(owners, row, strict=True)] for row in taken[:-1]
    ]
    adam = [
        [
            rate_and_correction(options, owner.adam.steps + int(n) + 1)
            for owner, n in zip(owners, row, strict=True)
        ]
        for row in taken[:-1]
    ]
    for owner, count in zip(owners, taken[-1], strict=True):
        owner.adam.steps += int(count)
    names = torch.tensor(keys, dtype=torch.int64)
    numbers = torch.tensor(adam, dtype=torch.float32)
    columns = [names, torch.tensor(active)[:, :, None], numbers[:, :, :1], numbers[:, :, 1:]]
    on_device = [sent(each.contiguous(), device) for each in columns]
    return [StepNumbers(*(each[step] for each in on_device)) for step in range(len(active))]


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


@torch.no_grad()
def adam_step_of_group(options: AnyAdam, rows: GroupRows, gradient: Tensor, numbers: StepNumbers) -> None:
    """Take one step of each active client in place, as `fedmpi.engine.optimizer.adam_step`.

    Parameters
    ----------
    options : AdamOptions or AdamWOptions
    rows : GroupRows
        Parameters and moments of k clients; changed in place.
    gradient : float32 [k, length]
    numbers : StepNumbers
        Which clients take the step, with their rates and corrections.
    """
    parameters, decay = rows.parameters, options.weight_decay
    if options.name == "adamw":
        parameters, decay = parameters * (1 - options.lr * decay), 0.0
    gradient = gradient.add(parameters, alpha=decay)
    mean = rows.mean.lerp(gradient, 1 - options.beta1)
    square = (rows.square * options.beta2).addcmul_(gradient, gradient, value=1 - options.beta2)
    moved = parameters - numbers.rates * mean / (square.sqrt() / numbers.corrections + options.eps)
    for place, new in ((rows.parameters, moved), (rows.mean, mean), (rows.square, square)):
        place.copy_(torch.where(numbers.active, new, place))


Penalised = Callable[[Tensor], Tensor]
"""From the objective's gradient [k, length] to the one that the optimizer takes."""


class Steps:
    """Forward, backward and optimizer of k clients at once; nothing in a step waits for the device.

    Parameters
    ----------
    gin : GroupedGin
    rows : GroupRows
    options : AdamOptions or AdamWOptions
    penalised : callable, optional
        Of algorithms with a penalty.
    """

    def __init__(
        self, gin: GroupedGin, rows: GroupRows, options: AnyAdam, penalised: Penalised | None
    ) -> None:
        self._gin, self._rows, self._options, self._penalised = gin, rows, options, penalised
        self._replay: _Replay | None = None

    def take(self, batch: GroupBatch, numbers: StepNumbers, *, again: bool) -> tuple[Tensor, Tensor]:
        """Take a step; return the losses [k, B] and which predictions are right [k, B].

        With `again` the same batch comes in other steps too: a GPU then captures the step and replays it.
        """
        if not again or self._rows.parameters.device.type != "cuda":
            return self._take(batch, numbers)
        self._replay = self._replay or _Replay(self, batch, numbers)
        return self._replay.run(numbers)

    def _take(self, batch: GroupBatch, numbers: StepNumbers) -> tuple[Tensor, Tensor]:
        rows = self._rows
        leaf = rows.parameters.detach().requires_grad_()
        logits = self._gin.logits(leaf, batch, numbers.keys)
        nats = losses(logits, batch)
        (gradient,) = torch.autograd.grad((nats * batch.weights).sum(), leaf)
        rows.gradient.copy_(torch.where(numbers.active, gradient, rows.gradient))
        penalised = rows.gradient if self._penalised is None else self._penalised(rows.gradient)
        adam_step_of_group(self._options, rows, penalised, numbers)
        return nats.detach(), logits.detach().argmax(dim=2) == batch.labels


class _Replay:
    """A step captured as a CUDA graph: the step's numbers are copied in, losses and hits out."""

    def __init__(self, steps: Steps, batch: GroupBatch, numbers: StepNumbers) -> None:
        self._numbers = numbers.clone()
        self._numbers.active.fill_(False)  # so that warming up moves nobody
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                steps._take(batch, self._numbers)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._found = steps._take(batch, self._numbers)

    def run(self, numbers: StepNumbers) -> tuple[Tensor, Tensor]:
        """Replay with other numbers."""
        self._numbers.take(numbers)
        self._graph.replay()
        nats, hits = self._found
        return nats.clone(), hits.clone()
