"""The parts of the GPU kit, how long each may take, and what it is asked (imports without torch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.datasets.source import DataSource

LIMITS_S = {
    "device": 20.0,
    "agreement": 80.0,
    "rounds": 45.0,
    "profile": 35.0,
    "resume": 70.0,
    "ranks": 60.0,
    "sharing": 50.0,
}
"""Seconds after which a part is ended, in the order in which they run; see `PER_SETTING`."""

PER_SETTING = ("rounds", "profile", "sharing")
"""Parts that run once for each setting."""

SETTINGS = ("proteins", "nci1", "molecules", "sider")
PEER_PROFILED = ("synthetic", "proteins", "sider")
"""Settings whose peer is profiled: in the others the profiler takes minutes for its operators."""
GROUPS_OF = {"synthetic": 1, "nci1": 8}
"""Settings in which ranks share the device, with the size of a group: four groups and no fewer."""

CHECKS, ROUNDS, RESUME = "gpu/checks", "gpu/rounds", "gpu/resume"
"""Suites: what is held against the CPU, the settings that are timed, and what is killed and resumed."""


class Skipped(Exception):
    """A part has nothing to work on here, for the reason that it names."""


@dataclass(frozen=True)
class Request:
    """What a part is asked for.

    Attributes
    ----------
    part : str
        One of `LIMITS_S`.
    setting : str
        Of the suite `ROUNDS`, for parts that run once for each; else empty.
    device : str
        ``cuda`` or ``cpu``.
    source : DataSource
    repetitions, warmup : int
        Pairs of rounds that are timed, and pairs before.
    """

    part: str
    setting: str
    device: str
    source: DataSource
    repetitions: int
    warmup: int

    @property
    def limit_s(self) -> float:
        """Seconds after which the part is ended."""
        return LIMITS_S[self.part]

    @property
    def title(self) -> str:
        """The part and its setting, for the user."""
        return f"{self.part} {self.setting}".strip()


def requests(
    parts: Sequence[str],
    settings: Sequence[str],
    device: str,
    source: DataSource,
    repetitions: int,
    warmup: int,
) -> list[Request]:
    """Return what the parts are asked for, one after another."""
    return [
        Request(part, setting, device, source, repetitions, warmup)
        for part in LIMITS_S
        if part in parts
        for setting in (settings if part in PER_SETTING else ("",))
        if part != "sharing" or setting in GROUPS_OF
    ]
