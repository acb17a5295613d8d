"""Secure sums without MPI: what each protocol costs a client and the server, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

from fedmpi.benchmarks.complexity import fits
from fedmpi.benchmarks.samples import Measurement, Report, Turns, figures_of
from fedmpi.benchmarks.secure_sum import Setting, Sum, load_code

STEPS = ("keys", "shares", "upload", "answer")
"""A client's, in their order."""

_PHASES = {"offline": ("keys", "shares"), "upload": ("upload", "add"), "recovery": ("answer", "unmask")}
"""Steps of clients and server that make up each phase of a sum."""


@dataclass(frozen=True)
class Sweep:
    """Every combination is measured.

    Attributes
    ----------
    protocols : tuple of str
    sizes, clients : tuple of int
        Parameters of a model; clients of a sum.
    dropouts : tuple of float
        Shares of the clients that drop out after the shares, before they upload.
    """

    protocols: tuple[str, ...]
    sizes: tuple[int, ...]
    clients: tuple[int, ...]
    dropouts: tuple[float, ...]

    def settings(self) -> list[Setting]:
        """Return the sums to measure, the short ones first."""
        axes = product(sorted(self.sizes), sorted(self.clients), sorted(self.dropouts), self.protocols)
        return [Setting(protocol, size, clients, gone) for size, clients, gone, protocol in axes]


def measure(sweep: Sweep, turns: Turns, told: Callable[[str], None]) -> Report:
    """Run whole sums of every setting; each sum is compared with the plain one.

    All clients live in this process and take their steps one after another, so CPU seconds are what counts.

    Parameters
    ----------
    sweep : Sweep
    turns : Turns
        Sums of a setting.
    told : callable
        Told of every setting before it starts.

    Raises
    ------
    RunFailed
        A sum is not the plain one.
    """
    load_code(sweep.protocols)
    measurements = []
    for setting in sweep.settings():
        told(setting.title)
        rows = turns.of({"sum": partial(_figures, setting)})["sum"]
        measurements.append(Measurement(setting.labels(), figures_of(rows)))
    return summed_up(measurements, {name: list(each) for name, each in vars(sweep).items()} | vars(turns))


def summed_up(measurements: Sequence[Measurement], settings: Mapping[str, Any]) -> Report:
    """Return the report on measurements, with the fits of their growth."""
    fitted = fits(measurements)
    said = [*_without_rings(measurements), *(each.statement for each in fitted)]
    return Report("secure", settings, measurements, {"fits": [asdict(each) for each in fitted]}, said)


def _figures(setting: Setting, turn: int) -> dict[str, float]:
    """Run a sum; return its CPU seconds by step and phase, then its bytes."""
    taken, sent = Sum(setting, seed=turn).run()
    parts = {f"client_{step}": taken[step] for step in STEPS}
    parts |= {f"server_{step}": taken[step] for step in ("add", "unmask")}
    phases = {phase: sum(taken[step] for step in steps) for phase, steps in _PHASES.items()}
    whole = {**parts, **phases, "total": sum(phases.values())}
    return {f"{name}_seconds": seconds for name, seconds in whole.items()} | sent


def _without_rings(measurements: Sequence[Measurement]) -> list[str]:
    """Say where SecAgg+ has no ring: it is SecAgg there."""
    found: dict[str, set[int]] = {}
    for labels in (each.labels for each in measurements):
        if labels["protocol"] == "secagg+" and labels["neighbours"] == int(labels["clients"]) - 1:
            found.setdefault(str(labels["dropout"]), set()).add(int(labels["clients"]))
    places = [
        f"{', '.join(map(str, sorted(clients)))} clients at {dropout} dropouts"
        for dropout, clients in found.items()
    ]
    if not places:
        return []
    return [f"secagg+ is secagg for {'; '.join(places)}: no ring with fewer neighbours than all is safe"]
