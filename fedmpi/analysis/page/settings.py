"""Complete runs sorted into what can be compared, and into what differs in the seed only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedmpi.analysis import cells
from fedmpi.analysis.cells import key, titles
from fedmpi.analysis.estimates import Estimate, estimate
from fedmpi.analysis.names import (
    algorithm_look,
    algorithm_name,
    algorithm_place,
    dataset_name,
    known_objective,
    objective_place,
    reference_among,
    unsupervised_name,
)
from fedmpi.analysis.page.axes import COLOURS, DASHES
from fedmpi.analysis.page.collect import Digest, Float
from fedmpi.analysis.scores import LAST
from fedmpi.analysis.summary import setting
from fedmpi.errors import BadInput
from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric

_LONGEST_HEADING = 80
"""Runs that differ in more than a heading can say are numbered; the page lists their settings at its end."""


@dataclass(frozen=True)
class Cell(cells.Cell[Digest]):
    """A cell, and how it looks in charts."""

    label: str
    colour: int
    dash: int

    def values(self, rule: str = LAST, seeds: Sequence[int] | None = None) -> Float:
        """Return the headline [seeds, clients], or [seeds, 1] where clients have no value of their own."""
        return np.array([self.runs[seed].values[rule] for seed in (self.runs if seeds is None else seeds)])

    def score(self, rule: str = LAST) -> Estimate:
        """Return the mean over seeds of the headline, over clients where each has a value."""
        return estimate([clients.mean(run.values[rule]) for run in self.runs.values() if rule in run.values])

    def lead(self, other: Cell) -> Estimate:
        """Return how much better it is than another, by the headline, paired by the seeds that both have."""
        seeds = [seed for seed in self.runs if seed in other.runs]
        own, others = (
            [clients.mean(cell.runs[seed].values[LAST]) for seed in seeds] for cell in (self, other)
        )
        return estimate(self.metric.sign * np.subtract(own, others))

    def figure(self, name: str) -> Estimate:
        """Return the mean over seeds of a figure of the runs' summaries."""
        return estimate([run.summary.get(name, np.nan) for run in self.runs.values()])

    def mean(self, name: str) -> float:
        """Return that mean alone; NaN where a run lacks the figure."""
        return float(np.mean([run.summary.get(name, np.nan) for run in self.runs.values()]))


@dataclass(frozen=True)
class Setting:
    """Cells that can be compared: alike in all but algorithm and rounds, or but the unsupervised method.

    `clients` are those of the first; of all, where the headline is one by client. Leads are over the
    algorithm `against`.
    """

    heading: str
    clients: tuple[str, ...]
    cells: tuple[Cell, ...]
    against: str

    @property
    def metric(self) -> Metric:
        """The headline of the runs."""
        return self.cells[0].metric

    @property
    def metrics(self) -> list[Metric]:
        """All metrics of the runs, the headline first."""
        runs = [run for cell in self.cells for run in cell.runs.values()]
        return list({metric.name: metric for run in runs for metric in run.metrics}.values())

    def reference(self, cell: Cell, algorithm: str) -> Cell | None:
        """Return an algorithm's cell that another is set against: of as many rounds, else of the most."""
        found = [each for each in self.cells if each.algorithm == algorithm]
        same = [each for each in found if each.config["rounds"] == cell.config["rounds"]]
        return max(same or found, key=lambda each: int(each.config["rounds"]), default=None)


def settings(digests: Sequence[Digest], complaints: list[str], reference: str | None = None) -> list[Setting]:
    """Sort complete runs into settings and cells; runs that fit nowhere are named in `complaints`.

    Where clients have values of their own, runs of other clients (a central run has one) are another setting.
    Leads are over the algorithm `reference` where there is one, by default over FedAvg, else over the first.

    Raises
    ------
    BadInput
        No complete run is of the algorithm `reference`.
    """
    found: dict[tuple[str, tuple[str, ...]], dict[str, dict[int, Digest]]] = {}
    for run in digests:
        if run.status != "complete":
            continue
        own = run.clients if run.headline.scope == "client" else ()
        alike = found.setdefault((key(run.setting()), own), {})
        seeds = alike.setdefault(key(run.repeated()), {})
        twin = seeds.get(int(run.config["seed"]))
        if twin is not None:
            complaints.append(
                f"{run.folder}: left out of the averages, the same case and seed as {twin.folder}"
            )
        else:
            seeds[int(run.config["seed"])] = run
    kept = [[seeds for seeds in alike.values() if seeds] for alike in found.values()]
    sorted_out = _named([alike for alike in kept if alike], reference)
    names = sorted({cell.algorithm for each in sorted_out for cell in each.cells})
    if reference not in (None, *names, *map(algorithm_name, names)):
        raise BadInput(f"--reference {reference}: complete runs are of {', '.join(names) or 'no algorithm'}")
    return sorted_out


def _named(found: Sequence[Sequence[dict[int, Digest]]], wanted: str | None) -> list[Setting]:
    firsts = [next(iter(alike[0].values())) for alike in found]
    configs = [run.setting() for run in firsts]
    names = _names([run.config for run in firsts])
    headings = [
        heading if len(heading) <= _LONGEST_HEADING else f"{name}, setting {place + 1}"
        for place, (name, heading) in enumerate(zip(names, titles(names, configs), strict=True))
    ]
    marked = [
        f"{heading}, {_counted(len(run.clients))}" if headings.count(heading) > 1 else heading
        for heading, run in zip(headings, firsts, strict=True)
    ]
    return [
        Setting(heading, run.clients, drawn, reference_among([cell.algorithm for cell in drawn], wanted))
        for heading, run, drawn in zip(marked, firsts, map(_cells, found), strict=True)
    ]


def _counted(clients_there: int) -> str:
    """Return "1 client" or "5 clients"."""
    return f"{clients_there} client{'s' * (clients_there != 1)}"


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
    drawn = []
    for place, (seeds, label) in enumerate(zip(ordered, labels, strict=True)):
        colour, repeat = algorithm_look(algorithms[place]), algorithms[:place].count(algorithms[place])
        dash = (colour + 2 * repeat) % DASHES
        if known_objective(
            _objective(firsts[place])
        ):  # a colour per objective, dashes per algorithm, on every dataset
            repeat = [_method(run) for run in firsts[:place]].count(_method(firsts[place]))
            colour, dash = _order(firsts[place])[0], (colour + 2 * repeat) % DASHES
        sorted_seeds = dict(sorted(seeds.items()))
        plain = re.sub(r"\brounds = (\d+)", r"\1 rounds", label)
        drawn.append(Cell(configs[place], sorted_seeds, plain, colour % COLOURS, dash))
    return tuple(drawn)


def _objective(run: Digest) -> str:
    return str(setting(run.config, "objective"))


def _method(run: Digest) -> str:
    algorithm, objective = str(setting(run.config, "algorithm")), _objective(run)
    return (
        unsupervised_name(objective, algorithm) if known_objective(objective) else algorithm_name(algorithm)
    )


def _order(run: Digest) -> tuple[int, int, str, int]:
    algorithm = str(setting(run.config, "algorithm"))
    return (
        objective_place(_objective(run)) if known_objective(_objective(run)) else 0,
        algorithm_place(algorithm),
        algorithm,
        int(run.config["rounds"]),
    )
