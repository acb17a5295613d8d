"""Complete runs sorted into what can be compared, and into what differs in the seed only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedmpi.analysis.figures.cells import key, titles
from fedmpi.analysis.names import (
    algorithm_name,
    algorithm_place,
    dataset_name,
    objective_place,
    unsupervised_name,
)
from fedmpi.analysis.page.axes import COLOURS, DASHES
from fedmpi.analysis.page.collect import ALONE, Digest, Float
from fedmpi.analysis.summary import setting
from fedmpi.metrics.headline import Headline

_LONGEST_HEADING = 80
"""Runs that differ in more than a heading can say are numbered; the page lists their settings at its end."""


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
    """Cells that can be compared: alike in all but algorithm and rounds, or but the unsupervised method.

    `clients` are those of the first; of all, unless a score over all clients' graphs compares the runs.
    """

    heading: str
    clients: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def clustered(self) -> bool:
        """Whether the runs are unsupervised."""
        return next(iter(self.cells[0].runs.values())).clustered

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
        cells = found.setdefault(key(run.setting()), {})
        seeds = cells.setdefault(key(run.repeated()), {})
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
    configs = [run.setting() for run in firsts]
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
    firsts = [next(iter(seeds.values())) for seeds in ordered]
    configs = [run.repeated() for run in firsts]
    labels = titles([_method(run) for run in firsts], configs)
    algorithms = [str(setting(config, "algorithm")) for config in configs]
    cells = []
    for place, (seeds, label) in enumerate(zip(ordered, labels, strict=True)):
        colour, repeat = algorithm_place(algorithms[place]), algorithms[:place].count(algorithms[place])
        dash = (colour + 2 * repeat) % DASHES
        if firsts[place].clustered:  # a colour per objective, dashes per algorithm, on every dataset
            repeat = [_method(run) for run in firsts[:place]].count(_method(firsts[place]))
            colour, dash = _order(firsts[place])[0], (colour + 2 * repeat) % DASHES
        sorted_seeds = dict(sorted(seeds.items()))
        plain = re.sub(r"\brounds = (\d+)", r"\1 rounds", label)
        cells.append(Cell(plain, colour % COLOURS, dash, configs[place], sorted_seeds))
    return tuple(cells)


def _method(run: Digest) -> str:
    algorithm = str(setting(run.config, "algorithm"))
    if run.clustered:
        return unsupervised_name(str(setting(run.config, "objective")), algorithm)
    return algorithm_name(algorithm)


def _order(run: Digest) -> tuple[int, int, str, int]:
    algorithm = str(setting(run.config, "algorithm"))
    objective = objective_place(str(setting(run.config, "objective"))) if run.clustered else 0
    return objective, algorithm_place(algorithm), algorithm, int(run.config["rounds"])
