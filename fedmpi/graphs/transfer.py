"""Copies from and to a device that the host does not wait for, and time by the device's own clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.clock import Stopwatch

_WORD = 8
"""Bytes at whose multiples the arrays of a block begin."""


def sent(values: Tensor, device: torch.device) -> Tensor:
    """Return host values on a device; to a GPU they go from pinned memory, and the host goes on."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True)
class BlockLayout:
    """Where arrays of several types lie in one block of int64 words, which goes to a device in one copy.

    Attributes
    ----------
    parts : tuple of (name, dtype, shape)
    """

    parts: tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]

    @cached_property
    def size(self) -> int:
        """Words of a block."""
        return sum(self._words)

    def views(self, block: Tensor) -> dict[str, Tensor]:
        """Return the arrays of a block, as views."""
        cuts = torch.split(block, self._words)
        return {
            name: cut.view(dtype)[: math.prod(shape)].view(shape)
            for (name, dtype, shape), cut in zip(self.parts, cuts, strict=True)
        }

    def arrays(self, block: Tensor) -> dict[str, npt.NDArray[Any]]:
        """Return the same of a block in host memory, as NumPy's."""
        memory = block.numpy()
        return {name: np.ndarray(shape, dtype, memory, start) for name, dtype, shape, start in self._in_host}

    @cached_property
    def _words(self) -> list[int]:
        return [-(-math.prod(shape) * dtype.itemsize // _WORD) for _, dtype, shape in self.parts]

    @cached_property
    def _in_host(self) -> list[tuple[str, np.dtype[Any], tuple[int, ...], int]]:
        """Name, type, shape and first byte of each array."""
        starts = _WORD * np.cumsum([0, *self._words])
        types = [torch.empty(0, dtype=dtype).numpy().dtype for _, dtype, _ in self.parts]
        parts = zip(self.parts, types, starts.tolist(), strict=False)
        return [(name, dtype, shape, start) for (name, _, shape), dtype, start in parts]


def on_host(words: int, device: torch.device) -> Tensor:
    """Return memory for blocks, int64 [words], uninitialised; pinned, if it is to go to a GPU."""
    return torch.empty(words, dtype=torch.int64, pin_memory=device.type == "cuda")


class Fetched:
    """Tensors of a device as they are now, on their way to the host in one copy, when a GPU gets there."""

    def __init__(self, *values: Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        self._values = list(values)
        device = values[0].device
        if device.type == "cuda":
            self._values = self._sent(device)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record(torch.cuda.current_stream(device))
        elif device.type == "cpu":
            self._values = [each.clone() for each in values]

    def _sent(self, device: torch.device) -> list[Tensor]:
        """Return where the values will be on the host: one behind another, each at a multiple of its size."""
        order = sorted(range(len(self._values)), key=lambda place: -self._values[place].itemsize)
        parts = [self._values[place].contiguous().flatten().view(torch.uint8) for place in order]
        there = torch.cat(parts)
        here = torch.empty(there.shape, dtype=torch.uint8, pin_memory=device.type == "cuda")
        here.copy_(there, non_blocking=True)
        found = list(self._values)
        for place, part in zip(order, torch.split(here, list(map(len, parts))), strict=True):
            found[place] = part.view(self._values[place].dtype).view(self._values[place].shape)
        return found

    def get(self) -> list[npt.NDArray[Any]]:
        """Return them; waits for a GPU."""
        if self._event is not None:
            self._event.synchronize()
        return [each.cpu().numpy() for each in self._values]


class DeviceWatch:
    """Time of work on a device since it was made, up to the last `stop`: a GPU's by its own events."""

    def __init__(self, device: torch.device) -> None:
        self._host, self._wall, self._cpu, self._device = Stopwatch(), 0.0, 0.0, device
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        if device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            begin.record(torch.cuda.current_stream(device))
            self._events = begin, end

    def stop(self) -> None:
        """Take the time: at once, or when a GPU gets here."""
        self._wall, self._cpu = self._host.wall, self._host.cpu
        if self._events is not None:
            self._events[1].record(torch.cuda.current_stream(self._device))

    @property
    def wall(self) -> float:
        """Wall-clock seconds; waits for a GPU."""
        if self._events is None:
            return self._wall
        begin, end = self._events
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000.0

    @property
    def cpu(self) -> float:
        """CPU seconds of this process, waiting left out."""
        return self._cpu
