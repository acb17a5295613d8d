"""Local training and evaluation of all clients in one process, against what the machine can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.benchmarks import machine
from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, figures_of, rates
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import GinOptions
from fedmpi.registry.check import Checked

_FLOAT_BYTES = 4
_INDEX_BYTES = 4

Ints = npt.NDArray[np.int64]
Action = Callable[[int], tuple[int, int]]
"""A phase of all clients in a round: its FLOPs by model and as executed."""

Rows = Sequence[Mapping[str, float]]
"""The rounds of a phase: `wall_seconds`, `cpu_seconds`, and the GFLOP by `model` and as `executed`."""


@dataclass(frozen=True)
class GinBytes:
    """Counted bytes of one GIN with `width` input features and `classes` outputs.

    Every operation (a product with the elementwise work before and after it, a sum over neighbours, a
    pooling) reads each of its operands once and writes its result once, in single precision; indices have 4
    bytes. What an implementation keeps in cache from one operation to the next lowers its real traffic below
    this; separate elementwise passes, layout copies and reads beyond the first raise it above.
    """

    options: GinOptions
    width: int
    classes: int

    def _products(self, counts: GraphCounts) -> list[tuple[int, int, int]]:
        """Return the products' shapes (rows, inner, columns) in the order of the forward pass."""
        hidden = self.options.hidden
        square = (counts.nodes, hidden, hidden)
        head = [(counts.graphs, hidden, hidden), (counts.graphs, hidden, self.classes)]
        return [(counts.nodes, self.width, hidden), *[square] * (2 * self.options.layers), *head]

    def _sums(self, counts: GraphCounts) -> int:
        """Return the bytes of all sums over neighbours and of the pooling, in one direction."""
        hidden, layers = self.options.hidden, self.options.layers
        features = layers * 2 * counts.nodes * hidden + (counts.nodes + counts.graphs) * hidden
        indices = layers * (counts.edges + counts.nodes) + counts.graphs
        return _FLOAT_BYTES * features + _INDEX_BYTES * indices

    def _norms(self, counts: GraphCounts, arrays: int) -> int:
        """Return the bytes of all normalisations, each reading and writing so many arrays of nodes."""
        layers = len(self.options.norms) * self.options.layers
        return _FLOAT_BYTES * layers * arrays * counts.nodes * self.options.hidden

    def forward(self, counts: GraphCounts) -> int:
        """Return the bytes of one forward pass."""
        products = sum(_operands(shape) for shape in self._products(counts))
        return products + self._sums(counts) + self._norms(counts, 2)

    def training(self, counts: GraphCounts) -> int:
        """Return the bytes of one forward and backward pass; the features need no gradient.

        Each product has two companions of the same three operands in the backward pass, for the weights and
        for the input; a normalisation reads its input and the gradient and writes one.
        """
        first, *rest = (_operands(shape) for shape in self._products(counts))
        return 2 * first + 3 * sum(rest) + 2 * self._sums(counts) + self._norms(counts, 5)


def _operands(shape: tuple[int, int, int]) -> int:
    rows, inner, columns = shape
    return _FLOAT_BYTES * (rows * inner + inner * columns + rows * columns)


@dataclass(frozen=True)
class Limits:
    """The machine's highest rates: GFLOP/s of square products and of those at a layer's shape, GB/s."""

    square: float
    layer: float
    bandwidth: float

    def seconds(self, gflop: float, gigabytes: float) -> float:
        """Return the limit of the roofline (Williams, Waterman and Patterson 2009): computing or moving."""
        return max(gflop / self.layer, gigabytes / self.bandwidth)


def measure(checked: Checked, source: DataSource, world: World, turns: Turns) -> Report:
    """Time rounds of local training and of evaluation, without averaging between them.

    Returns
    -------
    Report
        Per phase: seconds, GFLOP/s by model and as executed, shares of the machine's rates and of the
        roofline; and the rates themselves.
    """
    prepared = prepare(checked, source, world)
    hidden, rows = prepared.case.model.hidden, _nodes_per_step(prepared)
    actions: dict[str, Action] = {"train": prepared.train, "evaluate": prepared.evaluate}
    with deterministic(True):
        phases = turns.of({name: partial(_timed, each, prepared.device) for name, each in actions.items()})
    dense = machine.dense_sweep(prepared.device, hidden, rows, turns.repetitions)
    triad = machine.streaming(prepared.device, turns.repetitions)
    square, layer = machine.fastest(dense, "square"), machine.fastest(dense, "layer", rows)
    limits = Limits(square, layer, triad.figures["rate"].maximum)
    moved = _counted_gigabytes(prepared)
    found = [_measurement(name, phase, moved.get(name), limits) for name, phase in phases.items()]
    results = _results(phases, moved, limits) | {"nodes_per_step": rows}
    settings = {"case": prepared.case.config(), **vars(turns)}
    statements = [_machine_statement(limits, rows, hidden), *(_phase_statement(e, results) for e in found)]
    return Report("train", settings, [*found, *dense, triad], results, statements)


def _results(phases: Mapping[str, Rows], moved: Mapping[str, float], limits: Limits) -> dict[str, Any]:
    """Return the counts of a round and the machine's rates."""
    gflop = {name: rows[-1]["model"] for name, rows in phases.items()}
    return {
        "square_gflops": limits.square,
        "layer_gflops": limits.layer,
        "triad_gigabytes_per_second": limits.bandwidth,
        "counted_gigabytes": dict(moved),
        "model_gflop": gflop,
        "least_seconds": {name: limits.seconds(gflop[name], each) for name, each in moved.items()},
    }


def _timed(action: Action, device: torch.device, turn: int) -> dict[str, float]:
    flops: list[int] = []
    seconds = machine.times(lambda: flops.extend(action(turn)), device)
    return {**seconds, "model": flops[0] / 1e9, "executed": flops[1] / 1e9}


def _measurement(name: str, phase: Rows, gigabytes: float | None, limits: Limits) -> Measurement:
    seconds = figures_of([{name: row[name] for name in ("wall_seconds", "cpu_seconds")} for row in phase])
    wall = seconds["wall_seconds"]
    model, executed = (rates("GFLOP/s", (row[name] for row in phase), wall) for name in ("model", "executed"))
    figures = {
        **seconds,
        "model_rate": model,
        "executed_rate": executed,
        "model_peak_share": Samples.of("1", (rate / limits.square for rate in model.values)),
        "executed_peak_share": Samples.of("1", (rate / limits.square for rate in executed.values)),
    }
    if gigabytes is not None:
        traffic = rates("GB/s", [gigabytes] * len(phase), wall)
        least = limits.seconds(phase[-1]["model"], gigabytes)
        figures |= {
            "counted_bandwidth": traffic,
            "bandwidth_share": Samples.of("1", (rate / limits.bandwidth for rate in traffic.values)),
            "roofline_share": Samples.of("1", (least / each for each in wall.values)),
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


def _machine_statement(limits: Limits, rows: int, hidden: int) -> str:
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
