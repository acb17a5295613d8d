"""Complete runs sorted into what can be compared, and into repetitions."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedmpi.analysis.cells import (
    UNSET,
    Config,
    differing,
    grouped,
    is_group,
    key,
    names_itself,
    redrawn,
    titles,
    value_titles,
)
from fedmpi.analysis.names import (
    algorithm_looks,
    algorithm_name,
    algorithm_place,
    dataset_name,
    known_objective,
    objective_place,
    reference_among,
    unsupervised_name,
)
from fedmpi.analysis.page.axes import COLOURS, DASHES
from fedmpi.analysis.page.cells import Cell, Setting
from fedmpi.analysis.page.collect import Digest
from fedmpi.analysis.summary import setting
from fedmpi.config.tables import value_at
from fedmpi.errors import BadInput
from fedmpi.store.schema import preparation_seconds

_LONGEST_HEADING = 80
"""Runs that differ in more than a heading can say are numbered; the page lists their settings at its end."""


def settings(
    digests: Sequence[Digest],
    complaints: list[str],
    reference: str | None = None,
    across: Sequence[str] = (),
) -> list[Setting]:
    """Sort complete runs into settings and cells; runs that fit nowhere are named in `complaints`.

    Where clients have values of their own, runs of other clients (a central run has one) are another setting.
    Leads are over the algorithm `reference` where there is one, by default over FedAvg, else over the first.
    Values of the settings `across`, dotted, are compared like algorithms.

    Raises
    ------
    BadInput
        No complete run is of the algorithm `reference`, or has one of the settings `across`.
    """
    for name in across:
        values = [value_at(run.config, name) for run in digests]
        if values and all(value is None or is_group(value) for value in values):
            raise BadInput(f"--across {name}: no run has this setting: name one, such as optimizer.lr")
    found: dict[tuple[str, tuple[str, ...]], dict[str, dict[int, Digest]]] = {}
    for run in _marked([run for run in digests if run.status == "complete"], across):
        own = run.clients if run.headline.scope == "client" else ()
        alike = found.setdefault((key(run.setting(*across)), own), {})
        twin = alike.setdefault(key(run.repeated()), {}).setdefault(int(run.config["seed"]), run)
        if twin is not run:
            same = f"the same case and seed as {twin.folder}"
            complaints.append(f"{run.folder}: left out of the averages, {same}")
    sorted_out = _named([list(alike.values()) for alike in found.values()], reference, across)
    names = sorted({cell.algorithm for each in sorted_out for cell in each.cells})
    if reference not in (None, *names, *map(algorithm_name, names)):
        raise BadInput(f"--reference {reference}: complete runs are of {', '.join(names) or 'no algorithm'}")
    return sorted_out


def _marked(digests: Sequence[Digest], across: Sequence[str]) -> list[Digest]:
    """Return the same runs, which say whether each of their repetitions has a partition of its own."""
    if "partition.seed" in across:
        return list(digests)

    def mark(run: Digest) -> tuple[str, tuple[str, ...]]:
        return key(run.setting(*across, "partition.seed")), run.clients

    drawn = redrawn(digests, mark)
    return [replace(run, redrawn=mark(run) in drawn) for run in digests]


def legend(found: Sequence[Setting]) -> list[str]:
    """Return a line for each numbered setting: what it has that most of the same name have not."""
    numbered = [each for each in found if each.heading.startswith(f"{each.name}, {_NUMBERED}")]
    lines = []
    for name, members in grouped(numbered, lambda each: each.name).items():
        keys = dict.fromkeys(key for each in members for key in each.differs)
        usual = {key: Counter(each.differs.get(key) for each in members).most_common(1)[0][0] for key in keys}
        for each in members:
            there = {key: value for key, value in each.differs.items() if value != usual[key]}
            own = [
                f"{key} {'' if value == UNSET else '= '}{value}"
                for key, value in there.items()
                if value != UNSET or f"{key.rpartition('.')[0]}.name" not in there
            ]
            said = ", ".join(own) or "what most have"
            lines.append(f"{each.heading.removeprefix(f'{name}, ')} of {name}: {said}")
    return lines


def apart(found: Sequence[Setting]) -> list[str]:
    """Return a line for each dataset whose settings part algorithms from the reference: by what."""
    lines = []
    for name, members in grouped(found, lambda each: each.name).items():
        alone = [each for each in members if not each.leads]
        keys = dict.fromkeys(key for each in members for key in each.differs)
        algorithms = {cell.algorithm for each in members for cell in each.cells}
        if len(members) > 1 and alone and len(algorithms) > 1 and 0 < len(keys) <= _MOST_ACROSS:
            options = " ".join(f"--across {key}" for key in keys)
            lines.append(f"{name}: no lead where {', '.join(keys)} differs; {options} compares them")
    return lines


def remarks(runs: Iterable[tuple[Config, Mapping[str, Any]]]) -> list[str]:
    """Return lines, each once, about the algorithms of runs given by configuration and provenance."""
    found: dict[str, None] = {}
    for name, members in grouped(runs, lambda run: algorithm_name(str(setting(run[0], "algorithm")))).items():
        for _, provenance in members:
            found |= dict.fromkeys(f"{name}: {text}" for text in provenance.get("remarks", ()))
        known = (preparation_seconds(provenance) for _, provenance in members)
        if seconds := [each for each in known if each is not None]:
            spent = f"That took {statistics.median(seconds):.0f} s (median); s/round does not count it"
            found[f"{name}: clients work together before round 1. {spent}"] = None
    return list(found)


def unsplit(cells: Iterable[Cell]) -> list[str]:
    """Return a line for each cell whose groups never split."""
    labels = [cell.label for cell in cells if cell.never_split]
    return [f"{label}: its groups never split, so all clients are one" for label in labels]


_NUMBERED = "setting "
_MOST_ACROSS = 3


def _named(
    found: Sequence[Sequence[dict[int, Digest]]], wanted: str | None, across: Sequence[str]
) -> list[Setting]:
    firsts = [_first(alike[0]) for alike in found]
    configs = [run.setting(*across) for run in firsts]
    names = _names([run.config for run in firsts])
    looks = algorithm_looks((_Method(_first(seeds)).algorithm for alike in found for seeds in alike), DASHES)
    headings = titles(names, configs)
    for place, heading in enumerate(headings):
        if len(heading) > _LONGEST_HEADING:
            headings[place] = f"{names[place]}, {_NUMBERED}{place + 1}"
    differs, listed = differing(names, configs), []
    for place, (run, alike) in enumerate(zip(firsts, found, strict=True)):
        heading, cells = headings[place], _cells(alike, looks, across)
        if headings.count(heading) > 1:
            heading += f", {len(run.clients)} client{'s' * (len(run.clients) != 1)}"
        against = reference_among([each.algorithm for each in cells], wanted)
        listed.append(Setting(heading, run.clients, cells, against, names[place], differs[place]))
    return listed if len(looks) > 1 else _told_apart(listed)


def _told_apart(found: Sequence[Setting]) -> list[Setting]:
    """Return settings of one algorithm, whose cells have looks by their labels, the same in all settings."""
    labels = list(dict.fromkeys(cell.label for each in found for cell in each.cells))

    def told_apart(cell: Cell) -> Cell:
        dash, colour = divmod(labels.index(cell.label), COLOURS)
        return replace(cell, colour=colour, dash=dash % DASHES)

    return [replace(each, cells=tuple(map(told_apart, each.cells))) for each in found]


def _first(seeds: Mapping[int, Digest]) -> Digest:
    return next(iter(seeds.values()))


def _names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each setting: its dataset, and its model where the dataset has several."""
    pairs = [(dataset_name(str(setting(each, "dataset"))), str(setting(each, "model"))) for each in configs]
    models = grouped(set(pairs), lambda pair: pair[0])
    return [f"{dataset}, {model}" if len(models[dataset]) > 1 else dataset for dataset, model in pairs]


def _cells(
    found: Sequence[dict[int, Digest]], looks: Mapping[str, int], across: Sequence[str]
) -> tuple[Cell, ...]:
    """Return the cells of a setting: named by method, by what is compared across, and by what differs.

    Of an axis, such as a topology, its choice is enough, but where another axis has the same.
    """
    found = sorted(found, key=lambda seeds: _Method(_first(seeds)).order)
    configs = [_first(seeds).repeated() for seeds in found]
    methods = [_Method(_first(seeds)) for seeds in found]
    chosen, said = [""] * len(methods), set[str]()
    for dotted in across:
        values = [value_at(config, dotted) for config in configs]
        if len(set(zip(chosen, map(str, values), strict=True))) > len(set(chosen)):  # it is no other's doing
            own = value_titles(values)
            alone = any(map(names_itself, values)) and said.isdisjoint(own)
            said |= set(own) - {"none"}
            last = "" if alone else f"{dotted.rpartition('.')[2]} = "
            told = zip(chosen, values, own, strict=True)
            chosen = [each if value is None else f"{each}, {last}{title}" for each, value, title in told]
    names = [method.name + each for method, each in zip(methods, chosen, strict=True)]
    drawn, used = [], Counter[str]()
    for method, seeds, config, label in zip(methods, found, configs, titles(names, configs), strict=True):
        # Of unsupervised methods a colour per objective, dashes per algorithm, on every dataset.
        look = looks[method.algorithm]
        colour, mark = (method.order[0], method.name) if method.unsupervised else (look, method.algorithm)
        dash = look + 2 * used[mark]
        used[mark] += 1
        plain = re.sub(r"\brounds = (\d+)", r"\1 rounds", label)
        drawn.append(Cell(config, dict(sorted(seeds.items())), plain, colour % COLOURS, dash % DASHES))
    return tuple(drawn)


class _Method:
    """The algorithm and the objective of a run: what they are called, and their place among others."""

    def __init__(self, run: Digest) -> None:
        self.algorithm, objective = (str(setting(run.config, axis)) for axis in ("algorithm", "objective"))
        self.unsupervised, self.name, place = known_objective(objective), algorithm_name(self.algorithm), 0
        if self.unsupervised:
            self.name, place = unsupervised_name(objective, self.algorithm), objective_place(objective)
        self.order = place, algorithm_place(self.algorithm), self.algorithm, int(run.config["rounds"])
