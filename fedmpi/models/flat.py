"""All parameters of a model as views into one vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fedmpi.seeds import Purpose, key

ALIGNMENT = 16
"""Floats to which each tensor's start is padded (64 bytes), so products see aligned operands."""


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
        Padding elements are 0 and stay 0.
    slots : tuple of Slot
        Name, place and shape of every tensor.
    """

    def __init__(self, module: nn.Module, device: torch.device | str = "cpu") -> None:
        self.module = module
        self.slots = _slots(module)
        self.length = -(-self.slots[-1].stop // ALIGNMENT) * ALIGNMENT
        self.parameters = torch.zeros(self.length, device=device)
        self.gradient = torch.zeros(self.length, device=device)
        module.to(device)
        for slot, parameter in zip(self.slots, module.parameters(), strict=True):
            self.parameters[slot.start : slot.stop] = parameter.data.reshape(-1)
            parameter.data = self.parameters[slot.start : slot.stop].view(slot.shape)
            parameter.grad = self.gradient[slot.start : slot.stop].view(slot.shape)

    @property
    def num_parameters(self) -> int:
        """Number of parameters, padding not counted."""
        return sum(slot.stop - slot.start for slot in self.slots)

    def shared(self, share: str) -> SharedPart:
        """Return what leaves the client: ``"conv"`` (tensors named ``conv.*``) or ``"all"``."""
        chosen = [slot for slot in self.slots if share == "all" or slot.name.startswith(share + ".")]
        ranges: list[tuple[int, int]] = []
        for slot in chosen:
            if ranges and ranges[-1][1] == slot.start:
                ranges[-1] = (ranges[-1][0], slot.stop)
            else:
                ranges.append((slot.start, slot.stop))
        return SharedPart(tuple(ranges))

    def initialise(self, seed: int, owner: int) -> Tensor:
        """Return a fresh parameter vector, torch's default initialisation seeded by (seed, owner, layer)."""
        layers = [m for m in self.module.modules() if hasattr(m, "reset_parameters")]
        for number, layer in enumerate(layers):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(key(seed, Purpose.INIT, owner, number))
                layer.reset_parameters()  # type: ignore[operator]
        return self.parameters.clone()


def _slots(module: nn.Module) -> tuple[Slot, ...]:
    slots, start = [], 0
    for name, parameter in module.named_parameters():
        slots.append(Slot(name, start, tuple(parameter.shape)))
        start += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
    return tuple(slots)


@dataclass(frozen=True)
class SharedPart:
    """The ranges of a flat vector that are communicated, in order."""

    ranges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Number of shared parameters."""
        return sum(stop - start for start, stop in self.ranges)

    def pack(self, row: Tensor) -> Tensor:
        """Return the shared elements of a flat vector as a new vector [size]."""
        return torch.cat([row[start:stop] for start, stop in self.ranges])

    def unpack(self, values: Tensor, row: Tensor) -> None:
        """Write a vector [size] into the shared elements of a flat vector."""
        done = 0
        for start, stop in self.ranges:
            row[start:stop] = values[done : done + stop - start]
            done += stop - start
