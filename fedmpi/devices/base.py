"""Devices as the virtual clock knows them, and the settings that all kinds share (imports without torch)."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fedmpi.config.options import Options
from fedmpi.errors import BadInput
from fedmpi.seeds import Purpose, key, words

Floats = npt.NDArray[np.float64]
NANOSECONDS = 10**9
"""Of a second: the clock counts whole ones, so that no order depends on rounding."""

_LONGEST_S = 1e8
"""Of a run on average: an int64 holds 92 times as many nanoseconds."""

_MOST_PERIODS = 100_000
"""Of a device in a run on average: all are drawn one by one."""


@dataclass(frozen=True)
class Devices:
    """The devices of a federation.

    Attributes
    ----------
    seed : int
        Of the run; draws when devices are there.
    speed : float64 [clients]
        GFLOP/s.
    up, down : float64 [clients]
        Mbit/s.
    latency : float64 [clients]
        Milliseconds that a message takes on top.
    on, off : float64 [clients]
        Mean seconds for which a device is there, and is not; 0 off: always there.
    """

    seed: int
    speed: Floats
    up: Floats
    down: Floats
    latency: Floats
    on: Floats
    off: Floats
    _ends: dict[int, list[int]] = field(default_factory=dict)

    def seconds(self, client: int, flops: int, bytes_up: int, bytes_down: int) -> tuple[float, float, float]:
        """Return the seconds in which a client gets a model, trains, and sends its update."""
        latency = 1e-3 * float(self.latency[client])
        gets = latency + 8e-6 * bytes_down / float(self.down[client])
        sends = latency + 8e-6 * bytes_up / float(self.up[client])
        return gets, 1e-9 * flops / float(self.speed[client]), sends

    def work(self, client: int, flops: int, bytes_up: int, bytes_down: int) -> tuple[int, int, int]:
        """Return the same in nanoseconds, one at least."""
        seconds = self.seconds(client, flops, bytes_up, bytes_down)
        gets, trains, sends = (round(NANOSECONDS * each) for each in seconds)
        return gets, trains, max(1, sends)

    def refuse_endless(self, client: int, seconds: float) -> None:
        """Raise BadInput where work of so many seconds takes too long, or is interrupted too often."""
        on, off = float(self.on[client]), float(self.off[client])
        whole = seconds * (1 + off / on) + off
        periods = whole / (on + off) if off else 0.0
        if not whole <= _LONGEST_S:
            text = f"takes {whole:.3g} s, more than {_LONGEST_S:.0e}: use more speed, up, down or on"
        elif periods > _MOST_PERIODS:
            text = f"is interrupted {periods:.3g} times, more than {_MOST_PERIODS:,}: use more on and off"
        else:
            return
        raise BadInput(f"devices: all work of client {client} {text}")

    def end(self, client: int, begin: int, work: int) -> int:
        """Return when work of so many nanoseconds ends; it rests while the device is not there."""
        if not self.off[client]:
            return begin + work
        place, now = bisect_right(self._ends.setdefault(client, []), begin), begin
        while True:
            end = self._end(client, place)
            if end > now and place % 2 == 0:  # the device is there
                if now + work <= end:
                    return now + work
                work -= end - now
            now, place = max(now, end), place + 1

    def _end(self, client: int, place: int) -> int:
        """Return when a client's period ends; even ones are those in which it is there."""
        on, off = float(self.on[client]), float(self.off[client])
        ends = self._ends.setdefault(client, [])
        while len(ends) <= place:
            drawn = words(key(self.seed, Purpose.ONLINE, client, len(ends)), 2).tolist()
            uniform, starts_off = (drawn[0] + 0.5) * 2.0**-64, drawn[1] * 2.0**-64 * (on + off) < off
            mean = (on, off)[len(ends) % 2]
            length = 0 if not ends and starts_off else 1 + round(-NANOSECONDS * mean * math.log(uniform))
            ends.append((ends[-1] if ends else 0) + length)
        return ends[place]


def slowness(devices: Devices | None, clients: int) -> Floats:
    """Return how many times as long as the fastest each client's device computes, float64 [clients]."""
    return np.ones(clients) if devices is None else devices.speed.max() / devices.speed


class DeviceOptions(Options):
    """Base of the options of all kinds of devices."""

    speed: float = Field(10.0, gt=0, le=1e9)
    """GFLOP/s at which a client trains."""
    up: float = Field(10.0, gt=0, le=1e9)
    """Mbit/s of a client to the server."""
    down: float = Field(50.0, gt=0, le=1e9)
    """Mbit/s of the server to a client."""
    latency_ms: float = Field(20.0, ge=0, le=1e9)
    """Milliseconds that a message takes on top."""
    on: float = Field(600.0, gt=0, le=1e9)
    """Mean seconds for which a device is there, where `off` is above 0; its work rests in between."""
    off: float = Field(0.0, ge=0, le=1e9)
    """Mean seconds for which it is not there; 0: devices are always there."""

    clocked: ClassVar[bool] = True

    def make(self, seed: int, clients: int) -> Devices | None:
        """Return the devices of so many clients; `seed` is the run's.

        Raises
        ------
        BadInput
            There are none for so many.
        """
        return self.scaled(seed, np.ones(clients), np.ones(clients))

    def scaled(self, seed: int, speeds: Floats, rates: Floats) -> Devices:
        """Return devices of so many times the speed, and so many times the rates, [clients] each."""
        all_equal = np.ones(len(speeds))
        latency, on, off = (all_equal * value for value in (self.latency_ms, self.on, self.off))
        return Devices(seed, self.speed * speeds, self.up * rates, self.down * rates, latency, on, off)
