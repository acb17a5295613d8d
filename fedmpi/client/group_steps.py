"""The steps of a group of clients on a device, and what they need from the host."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions, SgdOptions
from fedmpi.client.group_rows import GroupRows, StepNumbers, numbers_layout, step_of_group
from fedmpi.client.optimizer import rate_and_correction
from fedmpi.client.state import ClientState
from fedmpi.graphs.packed import Int
from fedmpi.graphs.transfer import BlockLayout, on_host
from fedmpi.kernels.captured import Captured
from fedmpi.kernels.grouped_batches import GroupBatch, HostBatch
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.grouped_network import GroupedNetwork
from fedmpi.models.dropout import DropoutStreams


@dataclass(frozen=True)
class HostStep:
    """A step of some of a group's clients before it is sent.

    Attributes
    ----------
    batch : HostBatch
    layout : BlockLayout
        Of its numbers.
    """

    batch: HostBatch
    layout: BlockLayout

    @property
    def words(self) -> int:
        """Words of its block: the batch's, then the numbers'."""
        return self.batch.words + self.layout.size

    @property
    def kind(self) -> object:
        """Equal for steps that one captured step serves."""
        return self.batch.sizes, id(self.batch.resident)

    def on_device(self, graphs: GroupGraphs, block: Tensor) -> tuple[GroupBatch, StepNumbers]:
        """Return batch and numbers of a block on the device."""
        batch, numbers = torch.split(block, [self.batch.words, self.layout.size])
        return graphs.on_device(self.batch, batch), StepNumbers(**self.layout.views(numbers))


@dataclass
class Masks:
    """Dropout of a round: the run's seed, the round, and how many streams a step has."""

    seed: int
    round: int
    streams: int
    _taken: Counter[int] = field(default_factory=Counter)

    def keys(self, client: int) -> Int:
        """Return the keys of a client's streams in its next step, as torch's int64 has them."""
        step = self._taken[client]
        self._taken[client] += 1
        return DropoutStreams(self.seed, client, self.round, step).keys(self.streams).view(np.int64)


def pieces(steps: Sequence[HostStep]) -> Iterator[Sequence[HostStep]]:
    """Yield consecutive steps of one kind, as many as a power of two: few captures serve all rounds.

    The shortest come first, so that a GPU has work soon.
    """
    for _, of_kind in groupby(steps, key=lambda step: step.kind):
        left = list(of_kind)
        while left:
            count = min(len(left) & -len(left), _STEPS_AT_ONCE)
            yield left[:count]
            left = left[count:]


Changed = Callable[[Tensor, Tensor, Tensor], None]
"""Changes the gradient [k, length] of parameters [k, length], of clients by their places [k]."""

_STEPS_AT_ONCE = 16
"""Steps, at most, that are captured as one."""

_KEPT_STEPS = 256
"""Captured steps that a group keeps."""

Capture = Callable[[Callable[[], tuple[Tensor, ...]]], Captured]
"""Makes an action one that can be replayed."""


_Replay = tuple[Tensor, Sequence[tuple[GroupBatch, StepNumbers]], Captured]
"""The memory from which captured steps read their blocks, what else they read there, and the steps."""


@dataclass(eq=False)
class Steps:
    """Forward, backward and optimizer of k clients at once; nothing in a step waits for the device.

    Parameters
    ----------
    network : GroupedNetwork
    graphs : GroupGraphs
        What the clients train on.
    rows : GroupRows
    owners : sequence of ClientState
        The group's clients.
    options : OptimizerOptions
    changed : callable, optional
        Of algorithms with a `change`.
    capture : callable, optional
        How steps are captured; None: every step is taken anew.
    """

    network: GroupedNetwork
    graphs: GroupGraphs
    rows: GroupRows
    owners: Sequence[ClientState]
    options: OptimizerOptions
    changed: Changed | None
    capture: Capture | None
    _replays: OrderedDict[tuple[int, object], _Replay] = field(default_factory=OrderedDict)

    def take(self, batches: Sequence[HostBatch], masks: Masks) -> tuple[Tensor, Tensor]:
        """Take a round's steps, which the owners count as taken.

        Captured steps are replayed for others of the same sizes. The host writes blocks of the next ones
        while a GPU is busy.

        Returns
        -------
        losses : float32 [*]
            Of the examples of all batches.
        found : bool [*], int16 [*] or float32 [*, C]
            What they are scored by: `GroupedNetwork.judge`.
        """
        count = len(self.owners)
        taken: list[tuple[Tensor, ...]] = []
        steps = [HostStep(each, numbers_layout(len(each.who), count, masks.streams)) for each in batches]
        for piece in pieces(steps):
            block = self._written(piece, masks)
            if self.capture is None:
                taken.append(self._take_all(self._on_device(piece, self._sent(block))))
            else:
                taken.append(self._replayed(self.capture, piece, block))
        nats, found = zip(*taken, strict=True)
        return torch.cat(nats), torch.cat(found)

    def _written(self, steps: Sequence[HostStep], masks: Masks) -> Tensor:
        """Return the blocks of steps, one behind another in host memory."""
        words = [each.words for each in steps]
        block = on_host(sum(words), self.rows.parameters.device)
        for step, part in zip(steps, torch.split(block, words), strict=True):
            batch, numbers = torch.split(part, [step.batch.words, step.layout.size])
            if len(batch):
                self.graphs.fill(step.batch, batch)
            self._write_numbers(step.batch.who, step.layout.arrays(numbers), masks)
        return block

    def _write_numbers(
        self, who: Sequence[int], arrays: Mapping[str, npt.NDArray[Any]], masks: Masks
    ) -> None:
        arrays["who"][:], arrays["place"][:], arrays["active"][:] = who, 0, False
        for number, place in enumerate(who):
            owner = self.owners[place]
            owner.adam.steps += 1
            arrays["place"][place], arrays["active"][place] = number, True
            arrays["keys"][number] = masks.keys(owner.id)
            numbers = self.options.lr, 1.0
            if not isinstance(self.options, SgdOptions):
                numbers = rate_and_correction(self.options, owner.adam.steps)
            arrays["rates"][number], arrays["corrections"][number] = numbers

    def _sent(self, block: Tensor) -> Tensor:
        return block.to(self.rows.parameters.device, non_blocking=True)

    def _on_device(self, steps: Sequence[HostStep], block: Tensor) -> list[tuple[GroupBatch, StepNumbers]]:
        """Return batches and numbers of steps from their blocks on the device."""
        parts = torch.split(block, [each.words for each in steps])
        return [step.on_device(self.graphs, part) for step, part in zip(steps, parts, strict=True)]

    def _replayed(self, capture: Capture, steps: Sequence[HostStep], block: Tensor) -> tuple[Tensor, ...]:
        kind = len(steps), steps[0].kind
        if kind not in self._replays:
            while self._replays and sum(count for count, _ in self._replays) + len(steps) > _KEPT_STEPS:
                self._replays.popitem(last=False)
            self._replays[kind] = self._captured(capture, steps, block)
        self._replays.move_to_end(kind)
        own_block, _, captured = self._replays[kind]
        own_block.copy_(block, non_blocking=True)
        return captured.run()

    def _captured(self, capture: Capture, steps: Sequence[HostStep], block: Tensor) -> _Replay:
        """Capture steps. Capturing takes them once; afterwards the rows are as they were."""
        own_block = torch.empty_like(block, device=self.rows.parameters.device).copy_(block)
        bound = self._on_device(steps, own_block)
        before = [each.clone() for each in self.rows.all]
        captured = capture(lambda: self._take_all(bound))
        for row, old in zip(self.rows.all, before, strict=True):
            row.copy_(old)
        return own_block, bound, captured

    def _take_all(self, steps: Sequence[tuple[GroupBatch, StepNumbers]]) -> tuple[Tensor, Tensor]:
        both = zip(*(self._take(*each) for each in steps), strict=True)
        nats, found = (torch.cat([each.flatten(0, 1) for each in of]) for of in both)
        return nats, found

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
