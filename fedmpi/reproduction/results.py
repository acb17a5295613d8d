"""Rows sorted by what was run: a cell holds the repetitions of one configuration."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.options import option_text
from fedmpi.analysis.rows import RULES
from fedmpi.config import locations
from fedmpi.config.suite import SuiteFile
from fedmpi.errors import BadInput
from fedmpi.kinds import settled
from fedmpi.metrics.metric import METRICS, Metric
from fedmpi.registry.check import check_suite

Float = npt.NDArray[np.float64]
Row = Mapping[str, str]

_RESULTS = ("test_graphs", *RULES.values(), *(metric.field() for metric in METRICS.values()))


class Key(NamedTuple):
    """What was run, all repetitions alike."""

    dataset: str
    algorithm: str
    rounds: int
    options: str


class Repetition(NamedTuple):
    """What differs between repetitions."""

    split_seed: int
    seed: int


Plan = Mapping[Key, Mapping[Repetition, str]]
"""What a suite runs, by configuration: the name of each repetition's case."""

Runs = Mapping[Repetition, Mapping[str, Row]]
"""Rows by repetition and client."""


@dataclass(frozen=True)
class Cell:
    """The runs of one configuration, as far as they are there.

    Attributes
    ----------
    key : Key
    runs : mapping
        Ascending.
    missing : tuple of Repetition
        Those asked for that are not there.
    """

    key: Key
    runs: Runs
    missing: tuple[Repetition, ...] = ()

    def values(self, column: str, repetitions: Iterable[Repetition] | None = None) -> Float:
        """Return a column as float64 [repetitions, clients], clients by name; NaN where a row has no value.

        The name of a metric stands for the score where that is the rows' metric.

        Raises
        ------
        BadInput
            Repetitions have different numbers of clients.
        """
        chosen = self.runs if repetitions is None else repetitions
        table = [[_number(row, column) for _, row in sorted(self.runs[one].items())] for one in chosen]
        if len({len(line) for line in table}) > 1:
            raise BadInput(f"rows of {self.key.algorithm} on {self.key.dataset}: not always the same clients")
        return np.array(table, np.float64)

    def column(self, metric: Metric, rule: str, *, by_client: bool = False) -> str:
        """Return the column of a metric under a rule; `by_client`: of the mean over clients."""
        ending = RULES[rule].removeprefix("score") if metric.held_out else ""
        headline = {row["metric"] for rows in self.runs.values() for row in rows.values()}
        if headline == {metric.name} and not by_client:
            return f"score{ending}"
        return f"{'client_' if by_client else ''}{metric.field()}{ending}"

    def shared(self, other: Cell) -> list[Repetition]:
        """Return the repetitions that both cells have, ascending.

        Raises
        ------
        BadInput
            One of them has other clients than the other cell's.
        """
        both = sorted(self.runs.keys() & other.runs.keys())
        for one in both:
            if self.runs[one].keys() != other.runs[one].keys():
                names = f"{self.key.algorithm} and {other.key.algorithm} on {self.key.dataset}"
                raise BadInput(f"rows of {names}: not the same clients for seed {one.seed}")
        return both


NO_CELL = Cell(Key("", "", 0, ""), {})
"""Of what no suite computes."""


class Results:
    """All rows at hand."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Sort rows.

        Raises
        ------
        BadInput
            Rows of two numerics versions, or two runs of one case that differ in a result.
        """
        versions = sorted({row["numerics_version"] for row in rows})
        if len(versions) > 1:
            raise BadInput(f"rows of numerics versions {' and '.join(versions)}: a table uses runs of one")
        self.version = versions[0] if versions else ""
        found: dict[Key, dict[Repetition, dict[str, Row]]] = {}
        for row in rows:
            key = Key(row["dataset"], row["algorithm"], int(row["rounds"]), row["options"])
            repetition = Repetition(int(row["split_seed"]), int(row["seed"]))
            clients = found.setdefault(key, {}).setdefault(repetition, {})
            other = clients.setdefault(row["client"], row)
            if other is not row and any(other.get(name, "") != row.get(name, "") for name in _RESULTS):
                names = f"{other['suite']} {other['case']} and {row['suite']} {row['case']}"
                raise BadInput(f"{names}: runs of one case with different results; leave one out")
        self._runs = {key: dict(sorted(runs.items())) for key, runs in found.items()}
        self._files: dict[str, SuiteFile] = {}
        self._known: Known = {}
        self._plans: dict[tuple[str, str], Plan] = {}

    def cell(self, key: Key, repetitions: Collection[Repetition] | None = None) -> Cell:
        """Return the runs of a configuration, all or those of some repetitions."""
        runs = self._runs.get(key, {})
        if repetitions is None:
            return Cell(key, runs)
        missing = tuple(one for one in repetitions if one not in runs)
        return Cell(key, {one: rows for one, rows in runs.items() if one in repetitions}, missing)

    def plan(self, name: str, cases: str = "") -> Plan:
        """Return what a suite runs.

        Parameters
        ----------
        name : str
            As `fedmpi run` takes it.
        cases : str
            What ``--set`` takes, parted by spaces; by default all cases.
        """
        if (name, cases) not in self._plans:
            if name not in self._files:
                self._files[name] = SuiteFile(locations.find(name))
            self._plans[name, cases] = plan(self._files[name], cases.split(), self._known)
        return self._plans[name, cases]

    def planned(self, name: str, cases: str = "") -> list[Cell]:
        """Return the cells of a suite."""
        return [self.cell(*each) for each in self.plan(name, cases).items()]

    def one(self, name: str, cases: str) -> Cell:
        """Return the one cell of a suite's cases.

        Raises
        ------
        BadInput
            The cases are of several configurations.
        """
        key, repetitions = only(self.plan(name, cases), f"{name} {cases}")
        return self.cell(key, repetitions)


def only(plan: Plan, cases: str) -> tuple[Key, Mapping[Repetition, str]]:
    """Return the one configuration of a plan, and its repetitions; raise BadInput if there are several."""
    if len(plan) != 1:
        raise BadInput(f"{cases}: {len(plan)} configurations; a cell is one")
    return next(iter(plan.items()))


Known = dict[str, tuple[Key, Repetition]]
"""What was found out about settings: the configuration, and the seeds of a case that states none."""


def plan(file: SuiteFile, overrides: Sequence[str], known: Known) -> Plan:
    """Return what a suite runs under overrides, as ``--set`` takes them.

    Of cases whose settings differ in seeds alone one is checked, once for all calls with the same `known`.
    """
    found: dict[Key, dict[Repetition, str]] = {}
    suite = file.suite(overrides)
    with settled():
        for each in suite.cases:
            partition = each.settings.get("partition", {})
            own = dict(partition) if isinstance(partition, Mapping) else {"name": partition}
            split_seed, seed = own.pop("seed", None), each.settings.get("seed")
            kinds = [type(stated).__name__ for stated in (split_seed, seed)]
            mark = json.dumps({**each.settings, "partition": own, "seed": kinds}, sort_keys=True, default=str)
            if mark not in known:
                (case,) = (checked.case for checked in check_suite(replace(suite, cases=(each,))))
                key = Key(case.dataset.name, case.algorithm.name, case.rounds, option_text(case.config()))
                known[mark] = key, Repetition(case.partition.seed, case.seed)
            key, usual = known[mark]
            one = Repetition(
                usual.split_seed if split_seed is None else split_seed, usual.seed if seed is None else seed
            )
            found.setdefault(key, {}).setdefault(one, each.name)
    return found


def _number(row: Row, column: str) -> float:
    return float(row.get("score" if row["metric"] == column else column) or "nan")
