"""Kinds of devices by name (imports without torch)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedmpi.config.options import Options, by_name
from fedmpi.devices.base import DeviceOptions, Devices
from fedmpi.errors import BadInput
from fedmpi.seeds import Purpose, generator, key, permutation

COLUMNS = ("speed", "up", "down", "latency_ms", "on", "off")
"""What a file says of a device, as the settings of the same names."""


class NoDevices(Options):
    """There is no virtual clock."""

    name: Literal["none"] = "none"

    clocked: ClassVar[bool] = False

    def make(self, seed: int, clients: int) -> Devices | None:
        """Return none."""
        return None


class EqualOptions(DeviceOptions):
    """All are alike."""

    name: Literal["equal"] = "equal"


class TwoSpeedOptions(DeviceOptions):
    """Some train and communicate slower than the others; which ones, the seed says."""

    name: Literal["two-speed"] = "two-speed"
    share: float = Field(0.25, gt=0, lt=1)
    """Share of the slow ones, rounded, one at least."""
    factor: float = Field(8.0, ge=1, le=1e6)
    """How many times slower they are."""

    def make(self, seed: int, clients: int) -> Devices:
        """See `DeviceOptions`."""
        slow = permutation(key(seed, Purpose.DEVICES), clients)[: max(1, int(self.share * clients + 0.5))]
        times = np.ones(clients)
        times[slow] = 1 / self.factor
        return self.scaled(seed, times, times)


class LognormalOptions(DeviceOptions):
    """Speeds and rates spread by a lognormal law around the given ones, their medians."""

    name: Literal["lognormal"] = "lognormal"
    speed_sigma: float = Field(1.0, ge=0, le=5)
    """Standard deviation of the logarithm of the speed."""
    rate_sigma: float = Field(1.0, ge=0, le=5)
    """The same of the rates up and down, which a client's link has in common."""

    def make(self, seed: int, clients: int) -> Devices:
        """See `DeviceOptions`."""
        drawn = [
            generator(key(seed, Purpose.DEVICES, client)).standard_normal(2) for client in range(clients)
        ]
        speeds, rates = np.array(drawn).T
        return self.scaled(seed, np.exp(self.speed_sigma * speeds), np.exp(self.rate_sigma * rates))


class FileOptions(DeviceOptions):
    """Devices from a CSV file: a line per client in order, a column per setting that differs between them."""

    name: Literal["file"] = "file"
    path: str = Field("", exclude=True)
    """The file, from where the command runs; the configuration keeps what it says, and not where it lay."""
    columns: dict[str, Annotated[tuple[float, ...], Field(strict=False)]] = Field({})
    """What it says: values of speed, up, down, latency_ms, on or off by client."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        """Read the file, unless the configuration has what it says."""
        if not isinstance(values, Mapping) or "columns" in values:
            return values
        return {**values, "columns": _columns(values.get("path", ""))}

    @model_validator(mode="after")
    def _complete(self) -> FileOptions:
        """Refuse columns that are none of a device's, or not the settings' kind of numbers."""
        if not self.columns or set(self.columns) - set(COLUMNS):
            raise ValueError(f"columns: some of {', '.join(COLUMNS)}")
        if len({len(values) for values in self.columns.values()}) != 1:
            raise ValueError("columns: all have a value for each client")
        for name, values in self.columns.items():
            for value in values:
                least = 0.0 if name in ("latency_ms", "off") else 1e-9
                if not least <= value <= 1e9:
                    raise ValueError(f"column {name}: {value:g} is not between {least:g} and 1e9")
        return self

    def make(self, seed: int, clients: int) -> Devices:
        """See `DeviceOptions`."""
        lines = len(next(iter(self.columns.values())))
        if lines != clients:
            raise BadInput(f"the file has {lines} lines for {clients} clients: it needs one for each")
        same = {name: (float(getattr(self, name)),) * clients for name in COLUMNS}
        speed, up, down, latency, on, off = (np.array((same | self.columns)[name]) for name in COLUMNS)
        return Devices(seed, speed, up, down, latency, on, off)


def _columns(path: Any) -> dict[str, list[float]]:
    """Return the columns of a CSV file with a header."""
    if not isinstance(path, str) or not path:
        raise ValueError('path: name a CSV file, as in devices = { name = "file", path = "devices.csv" }')
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            header, *lines = list(csv.reader(file))
        rows = [[float(value) for value in line] for line in lines if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"path: {path} cannot be read: {error}") from None
    except ValueError:
        raise ValueError(
            f"path: {path} must have a line of names, and a line of numbers per client"
        ) from None
    names = [name.strip() for name in header]
    if len(set(names)) < len(names):
        raise ValueError(f"path: {path} names a column twice")
    if not rows or any(len(row) != len(names) for row in rows):
        raise ValueError(f"path: {path} must have a number in each column of each line")
    found = dict(zip(names, zip(*rows, strict=True), strict=True))
    return {name: list(values) for name, values in found.items() if name != "client"}


AnyDevices = NoDevices | EqualOptions | TwoSpeedOptions | LognormalOptions | FileOptions
DevicesOptions = Annotated[AnyDevices, Field(discriminator="name")]
DEVICES = by_name(AnyDevices)
"""Option classes by name."""
