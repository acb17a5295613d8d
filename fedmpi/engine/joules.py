"""Joules of a round and of its phases, on the rank of each node that reads the counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.engine.energy import Energy
from fedmpi.store.schema import PHASES

Floats = npt.NDArray[np.float64]


class Joules:
    """Adds up what phases use since the last row.

    Parameters
    ----------
    energy : Energy or None
        None: nothing is recorded.
    """

    def __init__(self, energy: Energy | None) -> None:
        self._of_host = energy is not None and energy.of_host
        self._of_devices = energy is not None and energy.of_devices
        reads = energy is not None and energy.reads
        self._host = energy.host if energy is not None and reads and self._of_host else None
        self._devices = energy.devices if energy is not None and reads and self._of_devices else None
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._held = 0.0, 0.0
        self.restart()

    @property
    def width(self) -> int:
        """Numbers of a row, the same on all ranks."""
        return (1 + len(PHASES)) * self._of_host + self._of_devices

    def restart(self) -> None:
        """Let the row start now, with what was used before `hold`."""
        self._seen = self.host() - self._held[0], self._device() - self._held[1]
        self._held = 0.0, 0.0

    def hold(self) -> None:
        """Leave out of the row what is used from now until `restart`."""
        self._held = self.host() - self._seen[0], self._device() - self._seen[1]

    def host(self) -> float:
        """Return the counter of processors and memory; NaN where this rank does not read it."""
        return self._host.joules() if self._host is not None else np.nan

    def _device(self) -> float:
        return self._devices.joules() if self._devices is not None else np.nan

    def add(self, phase: str, around: str, since: float) -> None:
        """Add what was used since the counter stood at `since` to a phase; take it from the phase around."""
        if self._host is None:
            return
        used = self.host() - since
        self._phases[phase] += used
        if around:
            self._phases[around] -= used

    def row(self) -> Floats:
        """Return the row [width] that ends here and start the next."""
        now = self.host(), self._device()
        host, device = (end - begin for end, begin in zip(now, self._seen, strict=True))
        phases = list(self._phases.values()) if self._host is not None else [np.nan] * len(PHASES)
        self._seen, self._phases = now, dict.fromkeys(PHASES, 0.0)
        return np.array(
            [*([host, *phases] if self._of_host else []), *([device] if self._of_devices else [])]
        )

    def table(self, rows: Floats) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of all ranks, [ranks, width], as the record's measurement fields."""
        found: dict[str, npt.NDArray[Any]] = {}
        if self._of_host:
            found |= {"host_joules": rows[:, 0], "phase_joules": rows[:, 1 : 1 + len(PHASES)]}
        return found | ({"device_joules": rows[:, -1]} if self._of_devices else {})
