"""Local training and evaluation of all clients in one process, against what the machine can do."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.benchmarks import machine
from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.roofline import GinBytes, least_seconds
from fedmpi.benchmarks.samples import Measurement, Report, Samples, rates
from fedmpi.client.groups import Group
from fedmpi.clock import Stopwatch
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.models.flops import GraphCounts
from fedmpi.models.options import GinOptions
from fedmpi.registry.check import Checked

Ints = npt.NDArray[np.int64]


@dataclass
class _Phase:
    """What the rounds of one phase took, and the FLOPs of each."""

    wall: list[float]
    cpu: list[float]
    model_gflop: list[float]
    executed_gflop: list[float]


@dataclass(frozen=True)
class _Limits:
    """The machine's highest rates: GFLOP/s of square products and of those at a layer's shape, GB/s."""

    square: float
    layer: float
    bandwidth: float

    def seconds(self, gflop: float, gigabytes: float) -> float:
        """Return the least time by the roofline at the layer's rate."""
        return least_seconds(gflop, gigabytes, self.layer, self.bandwidth)


def measure(
    checked: Checked, source: DataSource, world: World, repetitions: int, warmup: int, functions: int = 0
) -> Report:
    """Time rounds of local training and of evaluation, without averaging between them.

    Parameters
    ----------
    functions : int
        How many functions to name by their own time in one more round of each phase, taken under Python's
        profiler.

    Returns
    -------
    Report
        Per phase: seconds, GFLOP/s by model and as executed, shares of the machine's rates and of the
        roofline; and the rates themselves.
    """
    prepared = prepare(checked, source, world)
    device = prepared.rounds.states.device
    rows = _nodes_per_step(prepared)
    with deterministic(True):
        phases = _rounds(prepared, device, repetitions, warmup)
        profiles = _profiles(prepared, warmup + repetitions, functions) if functions else {}
    dense = machine.dense_sweep(device, prepared.case.model.hidden, rows, repetitions)
    triad = machine.streaming(device, repetitions)
    limits = _Limits(
        machine.fastest(dense, "square"),
        machine.fastest(dense, "layer", rows),
        triad.figures["rate"].maximum,
    )
    moved = _counted_gigabytes(prepared)
    found = [_measurement(name, phase, moved.get(name), limits) for name, phase in phases.items()]
    results = _results(phases, moved, limits) | {"nodes_per_step": rows, "functions": profiles}
    settings = {"case": prepared.case.config(), "repetitions": repetitions, "warmup": warmup}
    statements = [_machine_statement(limits, rows, prepared.case.model.hidden)]
    statements += [_phase_statement(each, results) for each in found]
    statements += [_functions_statement(name, shares) for name, shares in profiles.items()]
    return Report("train", settings, [*found, *dense, triad], results, statements)


def _results(phases: Mapping[str, _Phase], moved: Mapping[str, float], limits: _Limits) -> dict[str, Any]:
    """Return the counts of a round and the machine's rates."""
    return {
        "square_gflops": limits.square,
        "layer_gflops": limits.layer,
        "triad_gigabytes_per_second": limits.bandwidth,
        "counted_gigabytes": dict(moved),
        "model_gflop": {name: phase.model_gflop[-1] for name, phase in phases.items()},
        "least_seconds": {n: limits.seconds(phases[n].model_gflop[-1], each) for n, each in moved.items()},
    }


def _rounds(prepared: Prepared, device: torch.device, repetitions: int, warmup: int) -> dict[str, _Phase]:
    phases = {name: _Phase([], [], [], []) for name in ("train", "evaluate")}
    for number in range(warmup + repetitions):
        for name, action in _actions(prepared, number).items():
            wall, cpu, counted, executed = _timed(action, device)
            if number >= warmup:
                phase = phases[name]
                phase.wall.append(wall)
                phase.cpu.append(cpu)
                phase.model_gflop.append(counted / 1e9)
                phase.executed_gflop.append(executed / 1e9)
    return phases


def _actions(prepared: Prepared, number: int) -> dict[str, Callable[[], tuple[int, int]]]:
    """Return the phases of a round."""
    return {
        "train": partial(_of_all, prepared, partial(prepared.train, round=number)),
        "evaluate": partial(_of_all, prepared, prepared.evaluate),
    }


def _profiles(prepared: Prepared, number: int, functions: int) -> dict[str, dict[str, float]]:
    """Return by phase the functions that take the most time of their own, as shares of the phase."""
    found = {}
    for name, action in _actions(prepared, number).items():
        profiler = cProfile.Profile()
        profiler.runcall(action)
        profiler.create_stats()
        own: dict[str, float] = {}
        for (file, _, function), (_, _, seconds, _, _) in profiler.stats.items():
            label = function if file == "~" else f"{Path(file).stem}.{function}"
            own[label] = own.get(label, 0.0) + seconds
        total = sum(own.values())
        largest = sorted(own, key=lambda label: -own[label])[:functions]
        found[name] = {label: own[label] / total for label in largest}
    return found


def _functions_statement(name: str, shares: Mapping[str, float]) -> str:
    return f"{name}, own time: " + ", ".join(
        f"{label} {100 * share:.1f} %" for label, share in shares.items()
    )


def _timed(action: Callable[[], tuple[int, int]], device: torch.device) -> tuple[float, float, int, int]:
    machine.synchronise(device)
    watch = Stopwatch()
    counted, executed = action()
    machine.synchronise(device)
    return watch.wall, watch.cpu, counted, executed


def _of_all(prepared: Prepared, action: Callable[[Group], tuple[int, int]]) -> tuple[int, int]:
    """Do something with every group of clients; return the FLOPs by model and as executed."""
    done = [action(group) for group in prepared.groups]
    return sum(counted for counted, _ in done), sum(executed for _, executed in done)


def _measurement(name: str, phase: _Phase, gigabytes: float | None, limits: _Limits) -> Measurement:
    wall = Samples.of("s", phase.wall)
    model = rates("GFLOP/s", phase.model_gflop, wall)
    executed = rates("GFLOP/s", phase.executed_gflop, wall)
    figures = {
        "wall_seconds": wall,
        "cpu_seconds": Samples.of("s", phase.cpu),
        "model_rate": model,
        "executed_rate": executed,
        "model_peak_share": Samples.of("1", (rate / limits.square for rate in model.values)),
        "executed_peak_share": Samples.of("1", (rate / limits.square for rate in executed.values)),
    }
    if gigabytes is not None:
        traffic = rates("GB/s", [gigabytes] * len(phase.wall), wall)
        least = limits.seconds(phase.model_gflop[-1], gigabytes)
        figures |= {
            "counted_bandwidth": traffic,
            "bandwidth_share": Samples.of("1", (rate / limits.bandwidth for rate in traffic.values)),
            "roofline_share": Samples.of("1", (least / seconds for seconds in wall.values)),
        }
    return Measurement({"phase": name}, figures)


def _nodes_per_step(prepared: Prepared) -> int:
    """Return the mean number of nodes of a training batch, rounded."""
    nodes = steps = 0
    for split in prepared.partition.clients:
        nodes += _counts(prepared, split.dataset, split.train).nodes
        steps += -(-len(split.train) // prepared.case.batch_size)
    return round(nodes / steps)


def _counts(prepared: Prepared, dataset: int, graphs: Ints) -> GraphCounts:
    topology = prepared.raws[dataset].topology
    first, last = topology.graph_ptr[:-1][graphs], topology.graph_ptr[1:][graphs]
    edges = topology.row_ptr[last] - topology.row_ptr[first]
    return GraphCounts(len(graphs), int((last - first).sum()), int(edges.sum()))


def _counted_gigabytes(prepared: Prepared) -> dict[str, float]:
    """Return the counted bytes of a round by phase, in GB; nothing for models that nobody counted them of."""
    model = prepared.case.model
    if not isinstance(model, GinOptions):
        return {}
    train = evaluate = 0
    for split, shape in zip(prepared.partition.clients, prepared.federation.shapes, strict=True):
        counted = GinBytes(model, shape.width, shape.classes)
        train += counted.training(_counts(prepared, split.dataset, split.train)) * prepared.case.local_epochs
        held_out = np.concatenate([split.val, split.test])
        evaluate += counted.forward(_counts(prepared, split.dataset, held_out))
    return {"train": train / 1e9, "evaluate": evaluate / 1e9}


def _machine_statement(limits: _Limits, rows: int, hidden: int) -> str:
    return (
        f"machine: {limits.square:.1f} GFLOP/s in square products, {limits.layer:.1f} in "
        f"[{rows} x {hidden}] x [{hidden} x {hidden}], {limits.bandwidth:.1f} GB/s in the triad"
    )


def _phase_statement(found: Measurement, results: dict[str, Any]) -> str:
    name = str(found.labels["phase"])
    median = {key: each.median for key, each in found.figures.items()}
    work, moved = results["model_gflop"][name], results["counted_gigabytes"].get(name)
    taken = f"{1e3 * median['wall_seconds']:.1f} ms"
    speed = (
        f"{median['model_rate']:.1f} GFLOP/s by model and {median['executed_rate']:.1f} executed "
        f"({100 * median['model_peak_share']:.0f} and {100 * median['executed_peak_share']:.0f} % of square "
        "products)"
    )
    if moved is None:
        return f"{name}: {work:.2f} GFLOP counted, bytes for GIN only; {taken}: {speed}"
    return (
        f"{name}: {work:.2f} GFLOP and {moved:.2f} GB counted ({work / moved:.1f} FLOP/B), so at least "
        f"{1e3 * results['least_seconds'][name]:.1f} ms; {taken}, {100 * median['roofline_share']:.0f} % of "
        f"what that allows: {speed}, {100 * median['bandwidth_share']:.0f} % of the streaming bandwidth"
    )
