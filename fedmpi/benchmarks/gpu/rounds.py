"""A round on a device, of fedmpi and of plain PyTorch Geometric: its milliseconds, and what is done in it.

Kernels, launches and synchronisations of the host are counted by torch's profiler.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

from fedmpi.benchmarks import cases
from fedmpi.benchmarks.gpu.kit import MODELS_OF, PEER_PROFILED, ROUNDS, Request, Skipped
from fedmpi.benchmarks.gpu.work import work_of
from fedmpi.benchmarks.machine import synchronise, times
from fedmpi.benchmarks.peers import Engine, Pair, actions_in_turn, times_in_turn
from fedmpi.benchmarks.samples import Turns, median_with_interval, ratios
from fedmpi.clock import Stopwatch
from fedmpi.comm.devices import choose, describe
from fedmpi.comm.start import load_world
from fedmpi.datasets.names import family_of
from fedmpi.errors import BadInput
from fedmpi.models.options import MODELS
from fedmpi.registry.check import Checked
from fedmpi.store.schema import PHASES

_ALONE = 20
"""Rounds of fedmpi without the peer's in between."""

_WARMUP = {"fedmpi": 12, "peer": 2}
"""Rounds before the one that is profiled; in the first ones a GPU captures steps of new sizes."""

_MODELS = ("gcn", "gat", "sage", "fedgraphnn/gcn", "fedgraphnn/gat", "fedgraphnn/sage")
_MODEL_TURNS = Turns(3, 2)
"""Few, for so many models; a GPU captures steps in the first ones."""

_LAUNCHES = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch")
_SYNCHRONISATIONS = ("cudaStreamSynchronize", "cudaEventSynchronize")
"""What both programs wait by; ``cudaDeviceSynchronize`` is this module's, and the profiler's own."""

_COPIES = ("Memcpy", "Memset")


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


def checked_case(request: Request, *more: str) -> Checked:
    """Return a setting's case on the device, with further settings, its data prepared.

    Raises
    ------
    Skipped
        The data are not at hand.
    """
    checked = cases.choose(ROUNDS, [f"setting={request.setting}", f"device={request.device}", *more])
    try:
        request.source.prepare(checked.case.dataset.name)
    except BadInput as error:
        raise Skipped(str(error)) from error
    return checked


def timed(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield the times of the rounds of both programs, all of them, with their ratio; then fedmpi's phases."""
    pair = Pair(checked_case(request), request.source, load_world().World())
    peer, own = times_in_turn(pair, request.turns)
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


def by_model(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield for each of `_MODELS` that fits the times of rounds by grouped kernels and by "csr", in turn."""
    world, setting = load_world().World(), checked_case(request, *MODELS_OF[request.setting]).case
    examples = family_of(setting.dataset.name).examples
    for model in (name for name in _MODELS if examples in MODELS[name].examples):
        checked = {
            kernels: checked_case(
                request, f"model={model}", f"kernels={kernels}", *MODELS_OF[request.setting]
            )
            for kernels in ("csr", "grouped")
        }
        engines = {kernels: Engine(case, request.source, world) for kernels, case in checked.items()}
        actions = {kernels: engine.own_round for kernels, engine in engines.items()}
        timed = actions_in_turn(actions, engines["csr"].prepared.device, _MODEL_TURNS)
        seconds = {kernels: figures["wall_seconds"] for kernels, figures in timed.items()}
        yield {
            "setting": request.setting,
            "model": model,
            "seconds": {kernels: samples.record() for kernels, samples in seconds.items()},
            "ratio": ratios(seconds["csr"], seconds["grouped"]).median,
        }


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


def profiled(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield counts and shares of one round, of fedmpi and, where it has few enough operators, of the peer.

    On the CPU also `work`: what fedmpi's round asks of a GPU.
    """
    pair = Pair(checked_case(request), request.source, load_world().World())
    actions: dict[str, Callable[[], object]] = {"fedmpi": pair.own_round}
    if request.setting in PEER_PROFILED:
        actions["peer"] = pair.peer_round
    for program, action in actions.items():
        for _ in range(_WARMUP[program]):
            action()
        row = {"setting": request.setting, "program": program} | _profile(action, pair.prepared.device)
        if program == "fedmpi" and pair.prepared.device.type == "cpu":
            row["work"] = work_of(pair.own_round, len(pair.prepared.rounds.states.groups))
        yield row


def _profile(action: Callable[[], object], device: torch.device) -> dict[str, Any]:
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
