"""What papers print and claim, from the CSV files that travel with the suites."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedmpi.errors import BadInput

CLUSTERING = {"clustering accuracy": "clustering_accuracy", "macro F1": "clustering_f1"}
"""Columns of the metrics of a whole run; they are the last round's under every rule."""

SCORES = ("ROC-AUC", "RMSE")
"""Scores over all clients' test graphs, which rows have in place of accuracy."""

METRICS = ("average", "min gain", "ratio", *CLUSTERING, *SCORES)
"""Mean accuracy over clients; smallest gain of a client over self-train; clients that gain at least 0;
scores of one k-means over all clients' graphs; scores of one model over them."""

REFERENCE = "self-train"
"""Row of a table that its gains are measured against."""

_FIGURES = ("paper", "table", "row", "column", "metric", "value", "spread", "seeds", "suite", "cases", "note")
_CLAIMS = ("paper", "kind", "claim", "suite", "cases", "against")
KINDS = ("lead", "reread", "level", "improved")


@dataclass(frozen=True)
class Published:
    """One published figure.

    Attributes
    ----------
    paper, table, row, column, metric : str
        Where it stands; `metric` is one of `METRICS`.
    printed : str
        As printed: an accuracy, a difference of accuracies, or clients as ``14/30``.
    value : float
        The same as a number; of clients the share.
    spread : float or None
        The printed +-.
    clients : int or None
        Of a ratio.
    seeds : int
        Repetitions behind it.
    suite, cases : str
        What computes it: `cases` as for ``--set``, parted by spaces.
    note : str
    """

    paper: str
    table: str
    row: str
    column: str
    metric: str
    printed: str
    value: float
    spread: float | None
    clients: int | None
    seeds: int
    suite: str
    cases: str
    note: str

    @property
    def command(self) -> str:
        """What runs its cases."""
        return " ".join(["fedmpi sweep", self.suite, *(f"--set {case}" for case in self.cases.split())])


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper about two cells of its tables.

    Attributes
    ----------
    kind : str
        ``lead``: the average of `cases` is above that of `against`, by as much as published.
        ``reread``: the same where a paper's text leaves another reading of its table: a family of its own.
        ``level``: the average of `cases` is at least that of `against`, as text or a figure says.
        ``improved``: so many clients of `cases` gain over `against` as the published ratio says.
    """

    paper: str
    kind: str
    claim: str
    suite: str
    cases: str
    against: str


def read(path: Path) -> list[Published]:
    """Read published figures.

    Raises
    ------
    BadInput
        The file cannot be read, or a value in it; the message names the line.
    """
    found = []
    for number, row in enumerate(_rows(path, _FIGURES), start=2):
        try:
            found.append(_figure(row))
        except ValueError as error:
            raise BadInput(f"{path}: line {number}: {error}") from error
    return found


def read_claims(path: Path) -> list[Claim]:
    """Read claims.

    Raises
    ------
    BadInput
        The file cannot be read, or names a kind that there is not.
    """
    claims = [Claim(**row) for row in _rows(path, _CLAIMS)]
    for claim in claims:
        if claim.kind not in KINDS:
            raise BadInput(f"{path}: kind {claim.kind}: there are {', '.join(KINDS)}")
    return claims


def _figure(row: dict[str, str]) -> Published:
    metric, printed = row["metric"], row["value"]
    if metric not in METRICS:
        raise BadInput(f"metric {metric}: there are {', '.join(METRICS)}")
    clients = None
    if metric == "ratio":
        improved, clients = (int(part) for part in printed.split("/"))
    return Published(
        **{
            name: row[name]
            for name in ("paper", "table", "row", "column", "metric", "suite", "cases", "note")
        },
        printed=printed,
        value=improved / clients if clients else float(printed),
        spread=float(row["spread"]) if row["spread"] else None,
        clients=clients,
        seeds=int(row["seeds"]),
    )


def _rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    try:
        with path.open(newline="") as stream:
            reader = csv.DictReader(stream)
            rows = list(reader)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot read it ({error})") from error
    if tuple(reader.fieldnames or ()) != tuple(columns):
        raise BadInput(f"{path}: the columns must be {', '.join(columns)}")
    return rows
