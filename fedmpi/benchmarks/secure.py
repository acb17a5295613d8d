"""Secure sums without MPI: what each protocol costs a client and the server, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedmpi.benchmarks.complexity import fits
from fedmpi.benchmarks.samples import Measurement, Report, Samples
from fedmpi.benchmarks.secure_sum import Costs, Setting, Sum, load_code

PROTOCOLS = ("secagg", "secagg+", "lightsecagg")

STEPS = ("keys", "shares", "upload", "answer")
"""A client's, in their order; the first two make up the offline phase."""


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
        return [
            Setting(protocol, size, clients, dropout)
            for size in sorted(self.sizes)
            for clients in sorted(self.clients)
            for dropout in sorted(self.dropouts)
            for protocol in self.protocols
        ]


def measure(
    sweep: Sweep, repetitions: int, warmup: int, told: Callable[[str], None] = lambda text: None
) -> Report:
    """Run whole sums of every setting; each sum is compared with the plain one.

    All clients live in this process and take their steps one after another, so CPU seconds are what counts.

    Parameters
    ----------
    sweep : Sweep
    repetitions, warmup : int
        Measured sums of a setting, and sums before them that do not count.
    told : callable, optional
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
        found = []
        for turn in range(warmup + repetitions):
            costs = Sum(setting, seed=turn).run()
            found += [costs] if turn >= warmup else []
        measurements.append(Measurement(setting.labels(), _figures(found)))
    settings: dict[str, Any] = {
        "protocols": list(sweep.protocols),
        "sizes": list(sweep.sizes),
        "clients": list(sweep.clients),
        "dropouts": list(sweep.dropouts),
        "repetitions": repetitions,
        "warmup": warmup,
    }
    return summed_up(measurements, settings)


def summed_up(measurements: Sequence[Measurement], settings: Mapping[str, Any]) -> Report:
    """Return the report on measurements, with the fits of their growth."""
    fitted = fits(measurements)
    said = [*_without_rings(measurements), *(each.statement for each in fitted)]
    return Report("secure", settings, measurements, {"fits": [each.record() for each in fitted]}, said)


def _figures(found: Sequence[Costs]) -> dict[str, Samples]:
    """Return the figures of a setting's repetitions: CPU seconds, then bytes."""
    seconds = {f"client_{step}_seconds": [each.client_s[step] for each in found] for step in STEPS}
    for name, part in (("server_add", "add"), ("server_unmask", "unmask")):
        seconds[f"{name}_seconds"] = [each.server_s[part] for each in found]
    seconds["offline_seconds"] = [each.client_s["keys"] + each.client_s["shares"] for each in found]
    seconds["upload_seconds"] = [each.client_s["upload"] + each.server_s["add"] for each in found]
    seconds["recovery_seconds"] = [each.client_s["answer"] + each.server_s["unmask"] for each in found]
    seconds["total_seconds"] = [
        sum(parts)
        for parts in zip(
            *(seconds[f"{phase}_seconds"] for phase in ("offline", "upload", "recovery")), strict=True
        )
    ]
    sent = {
        f"client_{phase}_bytes": [each.client_bytes[phase] for each in found]
        for phase in ("offline", "upload", "answer")
    }
    sent["server_received_bytes"] = [each.server_bytes for each in found]
    figures = {name: Samples.of("s", values) for name, values in seconds.items()}
    return figures | {name: Samples.of("B", values) for name, values in sent.items()}


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
