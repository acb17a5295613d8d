"""All parameters of a model as views into one vector."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fedmpi.seeds import Purpose, key

ALIGNMENT = 16
"""Floats to which each tensor's start is padded (64 bytes), so products see aligned operands."""

FROZEN = "frozen."
"""Names of tensors that nobody trains and everybody has alike start so."""


@dataclass(frozen=True)
class Slot:
    """Place of one tensor in the flat vector."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        """End of the tensor's elements; padding may follow."""
        return self.start + int(np.prod(self.shape))


class FlatModel:
    """A module whose parameters and gradients live in two contiguous float32 vectors.

    Attributes
    ----------
    parameters, gradient : float32 [length]
        Padding elements are 0 and stay 0. The vector ends with the module's running statistics, whose
        gradient is 0.
    slots : tuple of Slot
        Name, place and shape of every parameter.
    statistics : tuple of Slot
        The same of its `statistics_of`: communicated or not like any tensor, never optimised,
        in no norm and no penalty.
    by_name : dict of str to Slot
        All of these.
    trained : int
        Length of the parameters' part, where the statistics start.
    initial : mapping of str to Tensor
        What these tensors, of its names and shapes, start from in place of drawn numbers; at first none.
    """

    def __init__(self, module: nn.Module, device: torch.device | str = "cpu") -> None:
        self.module = module
        self.initial: Mapping[str, Tensor] = {}
        self.slots = _slots(dict(module.named_parameters()), 0)
        self.trained = _aligned(self.slots[-1].stop)
        buffers = statistics_of(module)
        self.statistics = _slots(buffers, self.trained)
        self.length = _aligned(self.statistics[-1].stop) if buffers else self.trained
        self.by_name = {slot.name: slot for slot in (*self.slots, *self.statistics)}
        self.parameters = torch.zeros(self.length, device=device)
        self.gradient = torch.zeros(self.length, device=device)
        self._on_host = None if torch.device(device).type == "cpu" else FlatModel(copy.deepcopy(module))
        module.to(device)
        for slot, parameter in zip(self.slots, module.parameters(), strict=True):
            self.parameters[slot.start : slot.stop] = parameter.data.reshape(-1)
            parameter.data = self.parameters[slot.start : slot.stop].view(slot.shape)
            parameter.grad = self.gradient[slot.start : slot.stop].view(slot.shape)
        for slot in self.statistics:
            view = self.parameters[slot.start : slot.stop].view(slot.shape)
            owner, _, name = slot.name.rpartition(".")
            setattr(module.get_submodule(owner), name, view.copy_(buffers[slot.name]))

    @property
    def num_parameters(self) -> int:
        """Number of parameters, padding not counted."""
        return sum(slot.stop - slot.start for slot in self.slots)

    def shared(self, leaves: Callable[[str], bool]) -> SharedPart:
        """Return what leaves the client: the parameters and statistics for whose name `leaves` says so.

        What is frozen never does.
        """
        ranges: list[tuple[int, int]] = []
        for slot in (*self.slots, *self.statistics):
            if slot.name.startswith(FROZEN) or not leaves(slot.name):
                continue
            if ranges and ranges[-1][1] == slot.start:
                ranges[-1] = (ranges[-1][0], slot.stop)
            else:
                ranges.append((slot.start, slot.stop))
        trained = sum(min(stop, self.trained) - start for start, stop in ranges if start < self.trained)
        shapes = (each.shape for each in self.slots if not each.name.startswith(FROZEN) and leaves(each.name))
        return SharedPart(tuple(ranges), trained, tuple(shapes))

    def initialise(self, seed: int, owner: int) -> Tensor:
        """Return a fresh parameter vector: `initial`, else torch's defaults seeded by (seed, owner, layer).

        Layers in a part named ``frozen`` are owner 0's, the server's, for everybody. Every device gets the
        CPU's numbers: a GPU's generator draws others from the same seed.
        """
        if self._on_host is not None:
            self.parameters.copy_(self._on_host.initialise(seed, owner))
        else:
            self._draw(seed, owner)
        for name, tensor in self.initial.items():
            slot = self.by_name[name]
            self.parameters[slot.start : slot.stop].copy_(tensor.reshape(-1))
        return self.parameters.clone()

    def _draw(self, seed: int, owner: int) -> None:
        layers = [(n, m) for n, m in self.module.named_modules() if hasattr(m, "reset_parameters")]
        for number, (name, layer) in enumerate(layers):
            with torch.random.fork_rng(devices=[]):
                of = 0 if name.startswith(FROZEN) else owner
                # torch.manual_seed also notes a call, with its traceback, for each kind of absent device
                torch.default_generator.manual_seed(key(seed, Purpose.INIT, of, number))
                layer.reset_parameters()


def statistics_of(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's running statistics: floating-point buffers that it does not name in `constants`."""
    constants = getattr(module, "constants", ())
    named = module.named_buffers()
    return {name: buffer for name, buffer in named if buffer.is_floating_point() and name not in constants}


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _slots(tensors: Mapping[str, Tensor], start: int) -> tuple[Slot, ...]:
    slots = []
    for name, tensor in tensors.items():
        slots.append(Slot(name, start, tuple(tensor.shape)))
        start += _aligned(tensor.numel())
    return tuple(slots)


@dataclass(frozen=True)
class SharedPart:
    """The ranges of a flat vector that are communicated, in order; `trained` elements, then statistics.

    `shapes` are those of the tensors that are trained.
    """

    ranges: tuple[tuple[int, int], ...]
    trained: int
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def size(self) -> int:
        """Number of shared elements."""
        return sum(stop - start for start, stop in self.ranges)

    def pack(self, row: Tensor) -> Tensor:
        """Return the shared elements of a vector, or of each row of a matrix, as a new one [..., size]."""
        return torch.cat([row[..., start:stop] for start, stop in self.ranges], dim=-1)

    def part(self, row: Tensor) -> Tensor:
        """Return the same of what changes no more: without a copy, where it is contiguous."""
        if len(self.ranges) != 1:
            return self.pack(row)
        return row[..., slice(*self.ranges[0])]

    def unpack(self, values: Tensor, row: Tensor) -> None:
        """Write a vector [size] into the shared elements of a flat vector, or of each row of a matrix."""
        done = 0
        for start, stop in self.ranges:
            row[..., start:stop] = values[done : done + stop - start]
            done += stop - start
