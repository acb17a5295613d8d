"""Milliseconds of a round on a device, of fedmpi and of plain PyTorch Geometric in turn."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from fedmpi.benchmarks import cases
from fedmpi.benchmarks.gpu.plan import ROUNDS, Request, Skipped
from fedmpi.benchmarks.machine import synchronise
from fedmpi.benchmarks.peers import Pair, times_in_turn
from fedmpi.benchmarks.samples import median_with_interval, ratios
from fedmpi.clock import Stopwatch
from fedmpi.comm.devices import choose, describe
from fedmpi.comm.start import load_world
from fedmpi.errors import BadInput
from fedmpi.registry.check import Checked
from fedmpi.store.schema import PHASES

_ALONE = 20
"""Rounds of fedmpi without the peer's in between."""


def describe_device(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield what the device is.

    Raises
    ------
    BadInput
        There is none of that kind.
    """
    device = choose(request.device, 0)
    found: dict[str, Any] = {"device": describe(device), "torch": torch.__version__}
    if device.type == "cuda":
        facts = torch.cuda.get_device_properties(device)
        found |= {"memory_bytes": facts.total_memory, "multiprocessors": facts.multi_processor_count}
        found |= {"cuda": torch.version.cuda, "devices": torch.cuda.device_count()}
    yield found


def checked_case(request: Request) -> Checked:
    """Return a setting's case on the device, its data prepared.

    Raises
    ------
    Skipped
        The data are not at hand.
    """
    checked = cases.choose(ROUNDS, [f"setting={request.setting}", f"device={request.device}"])
    try:
        request.source.prepare(checked.case.dataset.name)
    except BadInput as error:
        raise Skipped(str(error)) from error
    return checked


def findings(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield the times of the rounds of both programs, all of them, with their ratio; then fedmpi's phases."""
    pair = Pair(checked_case(request), request.source, load_world().World())
    peer, own = times_in_turn(pair, request.repetitions, request.warmup)
    clients = pair.prepared.federation.num_clients
    yield {
        "setting": request.setting,
        "clients": clients,
        "kernels": pair.prepared.case.kernels,
        "seconds": {"fedmpi": own["wall_seconds"].record(), "peer": peer["wall_seconds"].record()},
        "client_seconds": own["wall_seconds"].median / clients,
        "ratio": median_with_interval(ratios(peer["wall_seconds"], own["wall_seconds"])),
    }
    yield {"setting": request.setting, "alone": _alone(pair)}


def _alone(pair: Pair) -> Mapping[str, float]:
    """Return the median seconds of fedmpi's rounds one after another, as in a run, and of their phases.

    `clients` is the clients' training, a part of `train`: with grouped kernels from the first step to the
    last as the device's clock has them.
    """
    device, rows = pair.prepared.device, []
    for _ in range(_ALONE):
        synchronise(device)
        watch = Stopwatch()
        measured = pair.own_round().measurements
        synchronise(device)
        phases = dict(zip(PHASES, measured["phase_seconds"][0].tolist(), strict=True))
        rows.append({"round": watch.wall, "clients": float(measured["client_wall_seconds"].sum()), **phases})
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}
