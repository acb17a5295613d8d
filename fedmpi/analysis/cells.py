"""Records sorted into groups and into cells, those of one configuration over its seeds, and their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fedmpi.analysis import scores
from fedmpi.analysis.names import algorithm_name, dataset_name
from fedmpi.analysis.summary import setting
from fedmpi.case.schema import Case
from fedmpi.config.tables import look_up
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric
from fedmpi.store.reader import Run
from fedmpi.store.schema import canonical_json, config_differences

UNSET = "not set"
"""What a title says of a setting that a configuration has not."""

Float = npt.NDArray[np.float64]
Config = Mapping[str, Any]


class Configured(Protocol):
    """What has a configuration."""

    @property
    def config(self) -> Config:
        """Its settings."""


RecordT = TypeVar("RecordT", bound=Run)
"""A run, or what is kept of one."""
ConfiguredT = TypeVar("ConfiguredT", bound=Configured)
Item = TypeVar("Item")
Mark = TypeVar("Mark")


def grouped(items: Iterable[Item], mark: Callable[[Item], Mark]) -> dict[Mark, list[Item]]:
    """Return items by their marks, both in the order in which they come."""
    found: dict[Mark, list[Item]] = {}
    for each in items:
        found.setdefault(mark(each), []).append(each)
    return found


@dataclass(frozen=True, eq=False)
class Cell(Generic[RecordT]):
    """Complete runs whose configurations differ in suite, case name and seeds only; equal to itself alone.

    Attributes
    ----------
    config : mapping
        What they have in common.
    runs : dict
        By seed, ascending; at least one.
    """

    config: Config
    runs: dict[int, RecordT]

    @property
    def algorithm(self) -> str:
        """The algorithm's name."""
        return str(setting(self.config, "algorithm"))

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        return str(setting(self.config, "dataset"))

    @property
    def name(self) -> str:
        """Algorithm and dataset as papers write them."""
        return f"{algorithm_name(self.algorithm)} on {dataset_name(self.dataset)}"

    @property
    def rounds(self) -> int:
        """Rounds of the runs."""
        if "rounds" not in self.config:
            raise BadInput(f"{self.first.folder}: its configuration has no rounds; leave it out")
        return int(self.config["rounds"])

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients' names, the same for every seed."""
        return self.first.clients

    @property
    def metric(self) -> Metric:
        """The headline of the runs."""
        return self.first.headline

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the first run, the headline first."""
        return self.first.metrics

    @property
    def first(self) -> RecordT:
        """The run of the first seed."""
        return next(iter(self.runs.values()))

    def over_seeds(self, values: Callable[[RecordT], Float], seeds: Iterable[int] | None = None) -> Float:
        """Return the mean of `values` over `seeds`, by default all; NaN where one has none."""
        chosen = self.runs if seeds is None else seeds
        return np.asarray(np.mean([values(self.runs[seed]) for seed in chosen], axis=0), np.float64)


def cells(runs: Sequence[Run]) -> list[Cell[Run]]:
    """Return the cells of runs, in the order of their first runs.

    Raises
    ------
    BadInput
        The same configuration and seed twice, or other clients for another seed.
    """
    drawn = redrawn(runs, _of_all_algorithms)

    def mark(run: Run) -> tuple[str, tuple[str, ...]]:
        apart = ("suite", "name", "seed", *_PARTITION * (_of_all_algorithms(run) in drawn))
        return key(run.config, *apart), apart

    return [_cell(members, *apart) for (_, apart), members in grouped(runs, mark).items()]


_PARTITION = ("partition.seed",)


def _of_all_algorithms(run: Run) -> tuple[str, tuple[str, ...]]:
    """Return what runs share that draw their repetitions alike, whatever their algorithm."""
    return key(run.config, "suite", "name", "seed", "algorithm", "rounds", *_PARTITION), run.clients


def redrawn(runs: Iterable[ConfiguredT], mark: Callable[[ConfiguredT], Mark]) -> set[Mark]:
    """Return the marks of runs of which each seed has a partition of its own.

    A repetition of these draws both anew. Several seeds with one partition are no such repetitions.
    """
    return {each for each, members in grouped(runs, mark).items() if _has_own_partitions(members)}


def _has_own_partitions(runs: Iterable[Configured]) -> bool:
    pairs = {(int(run.config["seed"]), look_up(run.config, "partition.seed")) for run in runs}
    seeds, of_partition = (set(part) for part in zip(*pairs, strict=True))
    return len(seeds) == len(of_partition) == len(pairs) > 1


def _cell(runs: Sequence[Run], *apart: str) -> Cell[Run]:
    by_seed: dict[int, Run] = {}
    for run in sorted(runs, key=lambda run: int(run.config["seed"])):
        other = by_seed.setdefault(int(run.config["seed"]), run)
        if other is not run:
            raise BadInput(f"{run.folder} and {other.folder} are runs of one configuration; leave one out")
        if run.clients != runs[0].clients:
            raise BadInput(f"{run.folder} has other clients than {runs[0].folder}, by the same configuration")
    return Cell(without(runs[0].config, *apart), by_seed)


def by_rule(rule: str) -> Callable[[Run], Float]:
    """Return a function that returns a run's headline by client [n] under a rule, as people read it.

    It raises BadInput for runs whose clients have no value of their own.
    """

    def values(run: Run) -> Float:
        if run.headline.scope != "client":
            raise BadInput(f"{run.folder}: no {run.headline.title} by client; leave it out")
        return run.headline.scale * scores.values(run, run.headline, rule)

    return values


def without(config: Config, *dotted: str) -> dict[str, Any]:
    """Return a configuration without some settings, such as ``partition.overlap``.

    Without the algorithm it is without the plug-in, too: the file that the algorithm stands in.
    """
    copy = dict(config)
    if "algorithm" in dotted:
        copy.pop("plugin", None)
    for name in dotted:
        head, _, rest = name.partition(".")
        if rest and isinstance(copy.get(head), Mapping):
            copy[head] = without(copy[head], rest)
        elif not rest:
            copy.pop(head, None)
    return copy


def key(config: Config, *apart: str) -> str:
    """Return text that two configurations share if they are equal but for the settings `apart`."""
    return canonical_json(without(config, *apart))


def titles(names: Sequence[str], configs: Sequence[Config]) -> list[str]:
    """Return a title for each configuration: its name, and what differs where several have one name."""
    return [
        ", ".join([name, *(f"{_short(key)} = {value}" for key, value in parts.items())])
        for name, parts in zip(names, differing(names, configs), strict=True)
    ]


def _short(dotted: str) -> str:
    """Return the last part of a setting's name, where that says whose it is."""
    last = dotted.rpartition(".")[2]
    return dotted if last == "seed" else last


def differing(names: Sequence[str], configs: Sequence[Config]) -> list[dict[str, str]]:
    """Return for each configuration what differs where several have one name: values by dotted setting."""
    found = []
    for name, config in zip(names, configs, strict=True):
        alike = [other for text, other in zip(names, configs, strict=True) if text == name]
        lines = [line for other in alike for line in config_differences(config, other)]
        settings = dict.fromkeys(line.partition(": ")[0] for line in lines)
        if any(setting.startswith("algorithm") for setting in settings):
            settings.pop("plugin", None)
        found.append(_told(settings, config, alike))
    return found


def _told(settings: Iterable[str], config: Config, alike: Sequence[Config]) -> dict[str, str]:
    """Return the values of settings; of an axis that some do not have its name and what differs below it.

    Where a configuration has one such axis and not another, the one is told alone.
    """
    axes = [each for each in settings if any(names_itself(other.get(each)) for other in alike)]
    told = {each: shown(look_up(config, each)) for each in settings if each.partition(".")[0] not in axes}
    chosen = {
        axis: _axis(config[axis], [other.get(axis) for other in alike]) for axis in axes if axis in config
    }
    return told | (chosen or {axis: _usual(axis) for axis in axes})


def _usual(axis: str) -> str:
    """Return the name of an axis where a configuration does not state it."""
    field = Case.model_fields.get(axis)
    return "none" if field is None else str(getattr(field.default, "name", "none"))


def is_group(value: Any) -> bool:
    """Return whether a setting's value is a table without a name: settings, not a choice."""
    return isinstance(value, Mapping) and "name" not in value


def names_itself(value: Any) -> bool:
    """Return whether a setting's value is a table with a name, such as an axis."""
    return isinstance(value, Mapping) and "name" in value


def value_titles(values: Sequence[Any]) -> list[str]:
    """Return what values of one setting are called: tables by name and what differs among namesakes.

    Where some have such a table, those without have "none".
    """
    tables = [value if names_itself(value) else None for value in values]
    if not any(tables):
        return [shown(value) for value in values]
    return [
        _axis(table, tables) if table else "none" if value is None else shown(value)
        for value, table in zip(values, tables, strict=True)
    ]


def _axis(own: Config, others: Sequence[Config | None]) -> str:
    namesakes = [other for other in others if other and other.get("name") == own.get("name")]
    apart = [
        f"{key} {shown(own[key])}" for key in own if any(other.get(key) != own[key] for other in namesakes)
    ]
    return f"{own.get('name')} ({', '.join(apart)})" if apart else str(own.get("name"))


def titled(
    items: Iterable[ConfiguredT], name: Callable[[ConfiguredT], str], *apart: str
) -> list[tuple[str, list[ConfiguredT]]]:
    """Return a title and its items for each configuration but for the settings `apart`.

    The title is the name of the first item, and what differs where several have one name.
    """
    groups = list(grouped(items, lambda each: key(each.config, *apart)).values())
    firsts = [members[0] for members in groups]
    headings = titles([name(each) for each in firsts], [without(each.config, *apart) for each in firsts])
    return list(zip(headings, groups, strict=True))


def run_titles(runs: Sequence[Run]) -> list[str]:
    """Return a title for each run: algorithm, dataset and seed, and what differs beyond these."""
    names = [f"{Cell(run.config, {0: run}).name}, seed {run.config['seed']}" for run in runs]
    return titles(names, [without(run.config, "suite", "name", "seed") for run in runs])


def shown(value: Any) -> str:
    """Return a setting's value as a title says it."""
    return UNSET if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def seeds_text(found: Iterable[Iterable[int]]) -> str:
    """Return what to say of the seeds behind a picture's means: "seed 10", "means over 3 to 5 seeds"."""
    sets = [tuple(seeds) for seeds in found]
    if len(set(sets)) == 1:
        text = ", ".join(map(str, sets[0]))
        return f"seed {text}" if len(sets[0]) == 1 else f"means over seeds {text}"
    least, most = min(map(len, sets)), max(map(len, sets))
    return f"means over {least if least == most else f'{least} to {most}'} seeds, not the same everywhere"
