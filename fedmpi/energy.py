"""Energy by a machine's counters: processors and memory by RAPL, GPUs by NVML (imports without torch)."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")
"""Where Linux shows RAPL."""

_ABSENT = "not available"

_GPU_TICK_S = 0.1
"""Seconds between two readings of a GPU, at the least."""


class RaplDomain:
    """A package of processor cores, or the memory beside it.

    Its counter starts again from zero at `max_energy_range_uj`: after some minutes at full power on some
    processors, so it must be read more often than that.

    Parameters
    ----------
    folder : Path
        Of the domain, such as ``/sys/class/powercap/intel-rapl:0``.

    Raises
    ------
    OSError
        It may not be read: since 2020 Linux lets root alone read it.
    """

    def __init__(self, folder: Path) -> None:
        self.name = (folder / "name").read_text().strip()
        self._range = int((folder / "max_energy_range_uj").read_text())
        self._file = (folder / "energy_uj").open("rb", buffering=0)
        self._last, self._total = self._read(), 0

    def _read(self) -> int:
        return int(os.pread(self._file.fileno(), 64, 0))

    def joules(self) -> float:
        """Return the joules since it was made.

        Raises
        ------
        OSError
            It can no longer be read.
        """
        now = self._read()
        used = now - self._last
        self._total += used if used >= 0 else used + self._range
        self._last = now
        return self._total / 1e6


class Gpu:
    """A GPU, whose counter is in millijoules since the driver was loaded.

    It moves about ten times a second and is read as often at most: the driver may take milliseconds.
    """

    def __init__(self, nvml: Any, uuid: str) -> None:
        self._nvml, self._handle = nvml, nvml.nvmlDeviceGetHandleByUUID(uuid)
        self.name = uuid
        self._first = self._last = self._read()

    def _read(self) -> int:
        self._read_at = time.monotonic()
        return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def joules(self) -> float:
        """See `RaplDomain.joules`."""
        try:
            if time.monotonic() - self._read_at >= _GPU_TICK_S:
                self._last = self._read()
            return (self._last - self._first) / 1e3
        except self._nvml.NVMLError as error:
            raise OSError(str(error)) from error


@dataclass
class Counters:
    """Counters of one kind on this machine; without any, `reason` says why."""

    parts: Sequence[RaplDomain | Gpu]
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.parts)

    def joules(self) -> float:
        """Return their sum since they were made; NaN from the first failure on."""
        try:
            return sum(each.joules() for each in self.parts) if self.parts else math.nan
        except (OSError, ValueError) as error:
            self.parts, self.reason = (), str(error)
            return math.nan

    def describe(self) -> str:
        """Return what is counted, or that nothing is and why."""
        if self.parts:
            return ", ".join(each.name for each in self.parts)
        return f"{_ABSENT} ({self.reason})" if self.reason else _ABSENT


def host(folder: Path = POWERCAP) -> Counters:
    """Return the counters of all packages and their memory; none unless all may be read.

    The domain "psys" is left out, because it holds the others, and so are the parts of a package.

    Parameters
    ----------
    folder : Path
        Where the domains are.
    """
    found: list[RaplDomain] = []
    try:
        for domain in sorted(folder.glob("intel-rapl:*")):
            name = (domain / "name").read_text().strip()
            if name.startswith("package") or name == "dram":
                found.append(RaplDomain(domain))
    except (OSError, ValueError) as error:
        return Counters((), getattr(error, "strerror", None) or str(error))
    return Counters(found, "" if found else "no RAPL")


def gpus(uuids: Iterable[str]) -> Counters:
    """Return the counters of GPUs by their UUIDs; none unless all can be read."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return Counters((), "no NVML: pip install nvidia-ml-py")
    try:
        nvml.nvmlInit()
        return Counters([Gpu(nvml, uuid) for uuid in uuids], "no GPU")
    except nvml.NVMLError as error:
        return Counters((), str(error))
