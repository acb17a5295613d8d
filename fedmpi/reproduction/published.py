"""The papers: what they print and claim, from the CSV files beside their suites, and how it is judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fedmpi.analysis.rows import RULES
from fedmpi.config import locations
from fedmpi.config.documents import load_csv
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import CLUSTERING_ACCURACY, CLUSTERING_F1, MAE, METRICS, MSE, RMSE, Metric

HEADLINE, BY_VALIDATION, AS_PUBLISHED = RULES

CLUSTERING = {"clustering accuracy": CLUSTERING_ACCURACY.name, "macro F1": CLUSTERING_F1.name}
"""What papers call metrics of all graphs of a run; they are the last round's under every rule."""

POOLED = {
    each.title: each for each in METRICS.values() if each.scope == "pooled" and each.title not in CLUSTERING
}
"""What papers call metrics over all clients' test examples."""

BY_CLIENT = {f"{each.title} by client": each for each in (MAE, MSE, RMSE)}
"""What is called here the mean over clients of such a metric."""

SCORES: Mapping[str, Metric] = POOLED | BY_CLIENT

GAINS = ("min gain", "ratio")
"""Gains of single clients over self-train; they are no means."""

KNOWN = ("average", *GAINS, *CLUSTERING, *SCORES)
"""Mean accuracy over clients; smallest gain of a client over self-train; clients that gain at least 0;
scores of one k-means over all clients' graphs; scores of one model over them; their means over clients."""

REFERENCE = "self-train"
"""Row of a table that its gains are measured against."""

DIVERGED = "diverge"
"""Printed in place of a score."""

SPREADS = ("average", "client", "")
"""What a printed +- is of: the figure between repetitions; each client's, as a mean over clients; nothing."""

KINDS = ("lead", "behind", "level", "above", "alike", "gain", "improved", "more", "twice", "least")
_OVER = ("more", "twice", "least")
"""Kinds that count clients, or their gains, over a third method."""

SOURCES = ("text", "table", "equal work")

Line = TypeVar("Line")

MARGIN = 0.02
"""Accuracies that differ by less are the same; ratios, if by less than a client (docs/reproduction)."""

RELATIVE_MARGIN = 0.05
"""Errors that differ by less, relative to the published one, are the same."""


@dataclass(frozen=True)
class Published:
    """One published figure.

    Attributes
    ----------
    paper, table, reading, row, column, metric : str
        Where it stands; `metric` is one of `KNOWN`. `reading` names what sets its runs apart from the
        table's, where the paper's text can be read in another way; blank for the table's own.
    value : str
        As printed: an accuracy, a difference of accuracies, clients as ``14/30``, or ``diverge``.
    spread : float or None
        The printed +-.
    spread_of : str
        What that is of, one of `SPREADS`.
    seeds : int
        Repetitions behind it.
    unpublished : str
        Settings that neither the paper nor a released code fixes; blank where all are known.
    suite, cases : str
        What computes it: `cases` as for ``--set``, parted by spaces. Blank where nothing can.
    lacks : str
        What there is not that it takes: data, or a kind of task.
    note : str

    Raises
    ------
    ValueError
        It is no figure.
    """

    paper: str
    table: str
    reading: str
    row: str
    column: str
    metric: str
    value: str
    spread: float | None
    spread_of: str
    seeds: int
    unpublished: str
    suite: str
    cases: str
    lacks: str
    note: str

    def __post_init__(self) -> None:
        if not self.suite and not self.lacks:
            raise ValueError("no suite: 'lacks' must say what it takes that there is not")
        for name, number in (("value", self.number), ("spread", self.spread or 0.0)):
            if not math.isfinite(number) and self.value != DIVERGED:
                raise ValueError(f"{name} {number}: no number")
        if self.seeds < 1:
            raise ValueError(f"seeds {self.seeds}: at least 1")

    @property
    def clients(self) -> int | None:
        """Of a ratio."""
        return int(self.value.split("/")[1]) if self.metric == "ratio" else None

    @cached_property
    def number(self) -> float:
        """What is printed as a number: of clients the share, NaN where training diverged."""
        if self.clients:
            return int(self.value.split("/")[0]) / self.clients
        return math.nan if self.value == DIVERGED else float(self.value)

    @property
    def score(self) -> Metric | None:
        """The metric that a score is of; None of other figures."""
        return SCORES.get(self.metric)

    @property
    def margin(self) -> float:
        """By how much figures that are the same may differ from it."""
        if self.score is not None and not self.score.bounded:
            return RELATIVE_MARGIN * self.number
        return 1 / self.clients if self.clients else MARGIN

    @property
    def cell(self) -> tuple[str, str, str]:
        """Its place in the paper: readings and metrics of one place are one cell."""
        return self.table, self.row, self.column

    @property
    def shown(self) -> str:
        """What is printed, with the +- where it has one."""
        return self.value if self.spread is None else f"{self.value} (±{self.spread})"

    @property
    def place(self) -> str:
        """The table, and the reading of it."""
        return f"{self.table}, {self.reading}" if self.reading else self.table

    @property
    def deviation(self) -> float | None:
        """The printed standard deviation between repetitions of the figure, where it is one."""
        return self.spread if self.spread_of == "average" else None

    @property
    def command(self) -> str:
        """What runs its cases; blank where nothing can."""
        if not self.suite:
            return ""
        return " ".join(["fedmpi sweep", self.suite, *(f"--set {case}" for case in self.cases.split())])


@dataclass(frozen=True)
class Claim:
    """One statement about cells of a paper's tables; the attributes are the columns of its file.

    Attributes
    ----------
    kind : str
        ``lead``: `cases` score better than `against`, by as much as published.
        ``behind``: `against` scores worse than `cases`, by as much as published, neither more nor less.
        ``level``: `cases` score at least as well as `against`.
        ``above``: `cases` score better than `against`, by whatever it is.
        ``alike``: they score the same but for the margin.
        ``gain``: the average of `cases` is above that of `against` by as large a part of it as published.
        ``improved``: so many clients of `cases` gain over `against` as the published ratio says.
        ``more``: `cases` improves so many clients more than `against` as published, both against `over`.
        ``twice``: `cases` improves at least twice as many clients as `against`, both against `over`.
        ``least``: the smallest gain of a client over `over` is larger than with `against`, by as much as
        published.
    source : str
        ``text``: a sentence of the paper; ``table``: a difference of cells that its text does not name;
        ``equal work``: such a sentence, of self-train with as many epochs as the other methods have.
    place : str
        The section or table of the paper.
    claim : str
        Lines of one kind with the same words and different readings are judged together.
    reading : str
        What the other lines with these words take in another way; blank where there is one way.
    suite, cases, against, over : str
        A blank suite: no suite computes this reading.
    metric : str
        Of the first five kinds: what is compared, one of `KNOWN`; blank for the average.

    Raises
    ------
    ValueError
        It leaves out cases that its kind needs.
    """

    paper: str
    kind: str
    source: str
    place: str
    claim: str
    reading: str
    metric: str
    suite: str
    cases: str
    against: str
    over: str

    def __post_init__(self) -> None:
        for name in ("cases", "against", *(("over",) if self.kind in _OVER else ())):
            if self.suite and not getattr(self, name):
                raise ValueError(f"{self.claim}: a claim of kind {self.kind} needs {name}")

    @property
    def score(self) -> Metric | None:
        """The metric that it is about; None of averages and of clusters."""
        return SCORES.get(self.metric)

    @property
    def sign(self) -> int:
        """1 where a higher figure is the better one, else -1."""
        return 1 if self.score is None else self.score.sign


def read(path: Path) -> list[Published]:
    """Read published figures; raises as `table` does."""

    def figure(spread: str, seeds: str, **others: Any) -> Published:
        return Published(spread=float(spread) if spread else None, seeds=int(seeds), **others)

    return table(path, figure, fields_of(Published), metric=KNOWN, spread_of=SPREADS)


def read_claims(path: Path) -> list[Claim]:
    """Read claims; raises as `table` does."""
    return table(path, Claim, fields_of(Claim), kind=KINDS, source=SOURCES, metric=("", *KNOWN))


def fields_of(kind: type[Any]) -> list[str]:
    """Return the names of a dataclass' fields."""
    return [field.name for field in fields(kind)]


def table(
    path: Path, make: Callable[..., Line], columns: Sequence[str], **known: Sequence[str]
) -> list[Line]:
    """Return what is made of the rows of a file that travels with the suites.

    Raises
    ------
    BadInput
        It cannot be read, has other columns, in a column a word that is not among those known, or a row that
        nothing can be made of; the message names the line.
    """

    def check(found: tuple[str, ...]) -> None:
        if found != tuple(columns):
            raise BadInput(f"{path}: the columns must be {', '.join(columns)}")

    def made(row: Mapping[str, str]) -> Line:
        for name, words in known.items():
            if row[name] not in words:
                there = ", ".join(filter(None, words))
                raise ValueError(f"{name} {row[name]}: there are {there}")
        return make(**row)

    lines = []
    for number, row in load_csv(path, check):
        try:
            lines.append(made(row))
        except ValueError as error:
            raise BadInput(f"{path}: line {number}: {error}") from error
    return lines


@dataclass(frozen=True)
class Paper:
    """A paper and the suites that compute it.

    Attributes
    ----------
    name : str
        As in the column `paper` of its CSV files, which lie beside its suites.
    title : str
    tables : tuple of str
        Suites of its tables; what the splits and the ablation are compared with is in the first.
    splits, ablation : str
        Suites; papers whose runs are scored as a whole have no other splits, and may have no ablation.
    scored : str
        What a whole run is scored by: "clusters", "scores", or "clients" where clients are.
    others : tuple of str
        Suites of other settings of a paper scored by clusters.
    rules : tuple of str
        Where clients are scored: the selection rules that figures and claims are judged under, the paper's
        own first.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    splits: str = ""
    ablation: str = ""
    scored: str = "clients"
    others: tuple[str, ...] = ()
    rules: tuple[str, ...] = (AS_PUBLISHED, HEADLINE)

    @cached_property
    def figures(self) -> list[Published]:
        """What it prints."""
        return read(locations.find(self.tables[0]).with_name("published.csv"))

    @cached_property
    def claims(self) -> list[Claim]:
        """What it claims."""
        return read_claims(locations.find(self.tables[0]).with_name("claims.csv"))

    @property
    def queue(self) -> tuple[str, ...]:
        """Suites whose missing cases its page lists."""
        further = (self.splits, self.ablation) if self.scored == "clients" else ()
        return (*self.tables, *filter(None, further))


PAPERS = (
    Paper(
        "GCFL",
        "Xie, Ma, Xiong, Yang: Federated graph classification over non-IID graphs, NeurIPS 2021",
        ("gcfl/table3", "gcfl/table4"),
        "gcfl/splits",
        "gcfl/ablation",
    ),
    Paper(
        "FCLG",
        "Li, Agrawal, Ramnath, Jin: Federated contrastive learning of graph-level representations, "
        "IEEE BigData 2024",
        ("fclg/table2", "fclg/table3"),
        scored="clusters",
        rules=(HEADLINE,),
        others=("fclg/sweep", "fclg/causes"),
    ),
    Paper(
        "FedCCH",
        "Jiao et al.: FedCCH, IJCAI 2025, doi 10.24963/ijcai.2025/333",
        ("fedcch/table1",),
        rules=(HEADLINE, BY_VALIDATION),
    ),
    Paper(
        "FedGraphNN",
        "He et al.: FedGraphNN, a federated learning system and benchmark for graph neural networks, 2021",
        ("fedgraphnn/table2", "fedgraphnn/table20", "fedgraphnn/table3", "fedgraphnn/table4"),
        ablation="fedgraphnn/freesolv",
        scored="scores",
        rules=(AS_PUBLISHED, BY_VALIDATION),
    ),
)
