"""What a device does in a round: kernels, launches, synchronisations of the host; by torch's profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

from fedmpi.benchmarks.gpu.plan import PEER_PROFILED, Request
from fedmpi.benchmarks.gpu.rounds import checked_case
from fedmpi.benchmarks.machine import times
from fedmpi.benchmarks.peers import Pair
from fedmpi.comm.start import load_world

_WARMUP = {"fedmpi": 12, "peer": 2}
"""Rounds before the one that is profiled; in the first ones a GPU captures steps of new sizes."""

_LAUNCHES = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch")
_SYNCHRONISATIONS = ("cudaStreamSynchronize", "cudaEventSynchronize")
"""What both programs wait by; ``cudaDeviceSynchronize`` is this module's, and the profiler's own."""

_COPIES = ("Memcpy", "Memset")


def findings(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield counts and shares of one round, of fedmpi and, where it has few enough operators, of the peer."""
    pair = Pair(checked_case(request), request.source, load_world().World())
    actions: dict[str, Callable[[], object]] = {"fedmpi": pair.own_round}
    if request.setting in PEER_PROFILED:
        actions["peer"] = pair.peer_round
    for program, action in actions.items():
        for _ in range(_WARMUP[program]):
            action()
        yield {"setting": request.setting, "program": program, **_profiled(action, pair.prepared.device)}


def _profiled(action: Callable[[], object], device: torch.device) -> dict[str, Any]:
    """Return the counts of an action; a share is of its wall-clock time under the profiler."""
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        seconds = times(action, device)
    return counts(profiler.key_averages(), seconds["wall_seconds"])


def counts(events: Sequence[Any], wall_s: float) -> dict[str, Any]:
    """Return what a profiler's averages say of a round.

    Parameters
    ----------
    events : sequence
        With `key`, `count`, `device_type`, `is_user_annotation`, `self_cpu_time_total` and
        `self_device_time_total` (microseconds).
    wall_s : float
        Seconds of the round.

    Returns
    -------
    dict
        Numbers of torch's `operators`, of `kernels` on the device, of their `launches` (a graph is one), of
        `copies`, of `synchronisations` of the host; `launch_share` and `device_share` of the time in which
        the host launched and in which a kernel ran.
    """
    # a label names a stretch of time, such as an optimizer's step, and is no kernel
    on_device = [e for e in events if e.device_type == DeviceType.CUDA and not e.is_user_annotation]
    host = [each for each in events if each.device_type == DeviceType.CPU]
    kernels = [each for each in on_device if not each.key.startswith(_COPIES)]
    launches = [each for each in host if each.key.startswith(_LAUNCHES)]
    return {
        "wall_seconds": wall_s,
        "operators": _total(each for each in host if each.key.startswith("aten::")),
        "kernels": _total(kernels),
        "copies": _total(each for each in on_device if each.key.startswith(_COPIES)),
        "launches": _total(launches),
        "synchronisations": _total(each for each in host if each.key in _SYNCHRONISATIONS),
        "launch_share": 1e-6 * sum(each.self_cpu_time_total for each in launches) / wall_s,
        "device_share": 1e-6 * sum(each.self_device_time_total for each in kernels) / wall_s,
    }


def _total(events: Iterable[Any]) -> int:
    return sum(each.count for each in events)
