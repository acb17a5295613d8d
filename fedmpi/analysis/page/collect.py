"""What the page keeps of each run, so that no more than one record is in memory at a time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.figures.cells import RULES, key, titles, without
from fedmpi.analysis.names import algorithm_name, algorithm_place, dataset_name
from fedmpi.analysis.page.axes import COLOURS, DASHES
from fedmpi.analysis.summary import CLUSTERING, setting, summarise
from fedmpi.metrics.headline import Headline, headline
from fedmpi.metrics.targets import mean_accuracy
from fedmpi.store.reader import Run

Float = npt.NDArray[np.float64]

CURVES = ("test_accuracy", "val_accuracy", "train_loss", "test_loss")
"""Results whose mean over clients is drawn by round."""

LAST, BEST, PUBLISHED = RULES
ALONE = "self-train"

_LONGEST_HEADING = 80
"""Runs that differ in more than a heading can say are numbered; the page lists their settings at its end."""


@dataclass(frozen=True)
class Holdings:
    """Who holds which classes: a run's partition.

    Attributes
    ----------
    mark : str
        The same for equal partitions.
    counts : int64 [n, classes]
        Graphs of each class.
    emd : float
        Mean distance of the clients' class shares from those of all graphs.
    """

    mark: str
    datasets: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    emd: float


@dataclass(frozen=True)
class Digest:
    """One run, in what the page shows of it.

    Attributes
    ----------
    config : dict
        With `numerics_version`: runs of two versions are never averaged.
    accuracy : dict of float64 [n]
        Test accuracy of each client by selection rule.
    curves : dict of float64 [R]
        Means over clients.
    phases : dict of float
        Seconds a rank spent in each phase on average, over all rounds.
    rates : dict of float
        GFLOP per second that a rank trained or evaluated: `model` and `executed`.
    traffic : dict of float
        MB of payload by collective, all ranks and rounds.
    headline : Headline or None
        The score by which the run is judged, where that is not accuracy.
    """

    folder: Path
    config: dict[str, Any]
    status: str
    reason: str
    clients: tuple[str, ...]
    summary: dict[str, Any]
    accuracy: dict[str, Float]
    curves: dict[str, Float]
    phases: dict[str, float]
    rates: dict[str, float]
    traffic: dict[str, float]
    holdings: Holdings | None
    provenance: dict[str, Any]
    headline: Headline | None = None

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.resolve().name


def digest(run: Run, target: float | None) -> Digest:
    """Return what the page keeps of a run."""
    seconds = _phase_seconds(run)
    return Digest(
        folder=run.folder,
        config={**run.config, "rounds": run.rounds, "numerics_version": run.numerics_version},
        status=run.status,
        reason=run.reason,
        clients=run.clients,
        summary=summarise(run, target),
        accuracy={rule: values(run) for rule, values in RULES.items()},
        curves=_curves(run),
        phases={name: value for name, (value, _) in seconds.items()},
        rates=_rates(run, seconds),
        traffic=_traffic(run),
        holdings=_holdings(run),
        provenance=run.lives[-1].provenance if run.lives else {},
        headline=headline(run.results),
    )


def _curves(run: Run) -> dict[str, Float]:
    """Return the means over clients by round, and the clustering accuracy of an unsupervised run."""
    found = {name: mean_accuracy(run.results[name]) for name in CURVES}
    if CLUSTERING[0] in run.results:
        found[CLUSTERING[0]] = np.asarray(run.results[CLUSTERING[0]], np.float64)
    return found


def _phase_seconds(run: Run) -> dict[str, tuple[float, float]]:
    """Return seconds by phase over all rounds: mean over ranks, and sum."""
    found: dict[str, tuple[float, float]] = {}
    for life, kept in run.kept_rounds():
        seconds = life.measurements["phase_seconds"][kept].sum(axis=0)
        for name, ranks in zip(life.phases, seconds.T, strict=True):
            mean, total = found.get(name, (0.0, 0.0))
            found[name] = (mean + float(ranks.mean()), total + float(ranks.sum()))
    return found


def _rates(run: Run, seconds: dict[str, tuple[float, float]]) -> dict[str, float]:
    busy = sum(seconds[name][1] for name in ("train", "evaluate") if name in seconds)
    if not busy:
        return {}
    model = run.results["model_flops"].sum() + run.results["evaluation_flops"].sum()
    executed = sum(life.measurements["executed_flops"][kept].sum() for life, kept in run.kept_rounds())
    return {"model": float(model) / busy / 1e9, "executed": float(executed) / busy / 1e9}


def _traffic(run: Run) -> dict[str, float]:
    found: dict[str, float] = {}
    for life, kept in run.kept_rounds():
        sizes = life.measurements["collective_bytes"][kept].sum(axis=(0, 1))
        for name, size in zip(life.collectives, sizes, strict=True):
            found[name] = found.get(name, 0.0) + float(size) / 1e6
    return found


def _holdings(run: Run) -> Holdings | None:
    stored = run.partition
    if "class_counts" not in stored:
        return None
    counts = stored["class_counts"]
    mark = hashlib.sha256(counts.tobytes() + " ".join(stored["datasets"]).encode())
    for name in ("train_index", "val_index", "test_index"):
        mark.update(stored[name].tobytes() if name in stored else b"")
    return Holdings(mark.hexdigest(), tuple(stored["datasets"]), counts, float(stored["total_emd"]))


@dataclass(frozen=True)
class Cell:
    """Complete runs that differ in their seed only, by seed, and how they look in charts."""

    label: str
    colour: int
    dash: int
    config: dict[str, Any]
    runs: dict[int, Digest]

    @property
    def algorithm(self) -> str:
        """The algorithm's name."""
        return str(setting(self.config, "algorithm"))

    def accuracy(self, rule: str, seeds: Sequence[int] | None = None) -> Float:
        """Return test accuracies [seeds, clients]."""
        return np.array([self.runs[seed].accuracy[rule] for seed in (self.runs if seeds is None else seeds)])

    def mean(self, figure: str) -> float:
        """Return the mean over seeds of a figure of the runs' summaries."""
        return float(np.mean([run.summary[figure] for run in self.runs.values()]))


@dataclass(frozen=True)
class Setting:
    """Cells that can be compared: alike in all but algorithm and rounds.

    `clients` are those of the first; of all, unless a score over all clients' graphs compares the runs.
    """

    heading: str
    clients: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def score(self) -> str | None:
        """Name of the score by which the runs are judged; None where that is accuracy."""
        return None if self._headline is None else self._headline.name

    @property
    def higher(self) -> bool:
        """Whether more of what the runs are judged by is better."""
        return self._headline is None or self._headline.higher

    @property
    def _headline(self) -> Headline | None:
        return next(iter(self.cells[0].runs.values())).headline

    def reference(self, cell: Cell) -> Cell | None:
        """Return the self-train that a cell's gains are over: of as many rounds, else of the most."""
        alone = [each for each in self.cells if each.algorithm == ALONE and each is not cell]
        same = [each for each in alone if each.config["rounds"] == cell.config["rounds"]]
        return max(same or alone, key=lambda each: int(each.config["rounds"]), default=None)


def settings(digests: Sequence[Digest], complaints: list[str]) -> list[Setting]:
    """Sort complete runs into settings and cells; runs that fit nowhere are named in `complaints`."""
    found: dict[str, dict[str, dict[int, Digest]]] = {}
    for run in digests:
        if run.status != "complete":
            continue
        config = without(run.config, "suite", "name", "seed")
        cells = found.setdefault(key(config, "algorithm", "rounds"), {})
        seeds = cells.setdefault(key(config), {})
        others = [other for each in cells.values() for other in each.values()]
        twin = seeds.get(int(run.config["seed"]))
        if twin is not None:
            complaints.append(
                f"{run.folder}: left out of the averages, the same case and seed as {twin.folder}"
            )
        elif others and others[0].clients != run.clients and run.headline is None:
            complaints.append(
                f"{run.folder}: left out of the averages, other clients than {others[0].folder}"
            )
        else:
            seeds[int(run.config["seed"])] = run
    kept = [[seeds for seeds in cells.values() if seeds] for cells in found.values()]
    return _named([cells for cells in kept if cells])


def _named(found: Sequence[Sequence[dict[int, Digest]]]) -> list[Setting]:
    firsts = [next(iter(cells[0].values())) for cells in found]
    configs = [without(run.config, "suite", "name", "seed", "algorithm", "rounds") for run in firsts]
    names = _names([run.config for run in firsts])
    headings = [
        heading if len(heading) <= _LONGEST_HEADING else f"{name}, setting {place + 1}"
        for place, (name, heading) in enumerate(zip(names, titles(names, configs), strict=True))
    ]
    return [
        Setting(heading, run.clients, _cells(cells))
        for heading, run, cells in zip(headings, firsts, found, strict=True)
    ]


def _names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each setting: its dataset, and its model where the dataset has several."""
    pairs = [(dataset_name(str(setting(each, "dataset"))), str(setting(each, "model"))) for each in configs]
    models = {dataset: {model for other, model in pairs if other == dataset} for dataset, _ in pairs}
    return [f"{dataset}, {model}" if len(models[dataset]) > 1 else dataset for dataset, model in pairs]


def _cells(found: Sequence[dict[int, Digest]]) -> tuple[Cell, ...]:
    ordered = sorted(found, key=lambda seeds: _order(next(iter(seeds.values()))))
    configs = [without(next(iter(seeds.values())).config, "suite", "name", "seed") for seeds in ordered]
    algorithms = [str(setting(config, "algorithm")) for config in configs]
    labels = titles([algorithm_name(name) for name in algorithms], configs)
    cells = []
    for place, (seeds, label) in enumerate(zip(ordered, labels, strict=True)):
        colour = algorithm_place(algorithms[place])
        repeat = algorithms[:place].count(algorithms[place])
        sorted_seeds = dict(sorted(seeds.items()))
        dash = (colour + 2 * repeat) % DASHES
        plain = re.sub(r"\brounds = (\d+)", r"\1 rounds", label)
        cells.append(Cell(plain, colour % COLOURS, dash, configs[place], sorted_seeds))
    return tuple(cells)


def _order(run: Digest) -> tuple[int, str, int]:
    algorithm = str(setting(run.config, "algorithm"))
    return algorithm_place(algorithm), algorithm, int(run.config["rounds"])
