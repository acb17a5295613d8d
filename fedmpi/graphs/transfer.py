"""Copies to a device that the host does not wait for, and time by the device's own clock."""

from __future__ import annotations

import torch
from torch import Tensor

from fedmpi.clock import Stopwatch


def sent(values: Tensor, device: torch.device) -> Tensor:
    """Return host values on a device; to a GPU they go from pinned memory, and the host goes on."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


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
