"""The columns of tables of runs, clients and label columns, and what a metric's value shows in any table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedmpi.analysis.scores import BEST, PUBLISHED, RULES
from fedmpi.judging.estimates import Estimate
from fedmpi.metrics.metric import Metric
from fedmpi.store.schema import SECURE_STEPS
from fedmpi.tables.table import Column, Entry, filled, number, words

Figures = Mapping[str, Any]
"""What `summarise`, `per_client` or `task_rows` says, by name."""


def score(metric: Metric, value: float | Estimate | None, kind: str = "", sign: str = "") -> Entry:
    """Return a metric's value as people read it, with half the width of its interval where it has one.

    Parameters
    ----------
    metric : Metric
    value : float or Estimate or None
    kind : str
        Its class on the page.
    sign : str
        "+" for a difference.
    """
    found = value if isinstance(value, Estimate) else Estimate(math.nan if value is None else value)
    shown = number(metric.scale * found.mean, metric.digits, kind, sign)
    if math.isnan(found.half):
        return shown
    return replace(shown, text=f"{shown.text} ± {metric.scale * found.half:,.{metric.digits}f}")


def run_columns(rows: Sequence[Figures], metrics: Iterable[Metric]) -> list[Column[Figures]]:
    """Return the columns of a table with a line per run.

    Parameters
    ----------
    rows : sequence of mapping
        Of `summarise`.
    metrics : iterable of Metric
        All metrics of these runs.
    """
    known = {metric.name: metric for metric in metrics}
    chosen = [known[name] for name in dict.fromkeys(row["metric"] for row in rows)]
    further = [metric for metric in known.values() if metric not in chosen]
    last, *others = _headlines(known, chosen)
    listed = [
        Column("case", lambda row: words(row["case"])),
        Column("dataset", lambda row: words(row["dataset"], "name")),
        Column("algorithm", lambda row: words(row["algorithm"], "name")),
        *([_OBJECTIVE] if any(metric.scope == "all" for metric in chosen) else []),
        Column("seed", _seed),
        Column("status", _status, spare=4 if all(row["status"] == "complete" for row in rows) else 2),
        Column("rounds", _rounds, spare=6),
        Column("ranks", lambda row: words(",".join(map(str, row["ranks"]))), spare=14),
        last,
        *filled(others, rows),
        *(_metric(metric, metric.field(), metric.label(unit=True), 10) for metric in further),
        *filled(_trust(chosen), rows),
        _number("s/round median", "round_seconds_median", 3, 15),
        _number("total s", "total_seconds", 1, 16),
        _number("model GFLOP", "model_gflop", 2, 17),
        _number("client MB", "client_megabytes", 2, 18),
        _number("virtual s", "virtual_seconds", 1, 19),
        *filled([_number("J", "joules", 0, 18)], rows),
        *filled([_number(f"{name} s", f"{name}_seconds", 3, 20) for name in SECURE_STEPS], rows),
    ]
    if any("target" in row for row in rows):
        listed += [_to_target("rounds", 0, 1), _to_target("seconds", 1, 5)]
        if any("joules" in (row["to_target"] or {}) for row in rows):
            listed.append(_to_target("joules", 0, 6))
    return listed


def client_columns(rows: Sequence[Figures], metrics: Iterable[Metric]) -> list[Column[Figures]]:
    """Return the columns of a table with a line per client of a run of these metrics, the headline first."""
    known = list(metrics)
    scores: list[Column[Figures]] = []
    for metric in known:
        field = metric.field()
        scores += [
            _metric(metric, metric.field("val"), metric.label("val", unit=True), 1),
            _metric(metric, field, f"{metric.label(unit=True)} last", 0),
            _metric(metric, field + RULES[BEST], BEST, 2),
            _metric(metric, field + RULES[PUBLISHED], PUBLISHED, 5),
            _metric(metric, f"{field}_without_twins", "without twins", 6),
        ]
    headline = next(iter(known), None)
    if headline is not None:
        scores.append(_metric(headline, "constant", "constant", 6))
    hostile = Column[Figures]("attacker", lambda row: "yes" if row.get("attacker") else None, spare=4)
    return [
        Column("client", lambda row: words(row["client"])),
        *filled([hostile], rows),
        _number("rounds", "rounds", 0, 4),
        _number("train loss", "train_loss", 4, 3),
        *filled(scores, rows),
        _number("model GFLOP", "model_gflop", 2, 7),
        _number("client MB", "client_megabytes", 2, 8),
    ]


def _trust(chosen: Sequence[Metric]) -> list[Column[Figures]]:
    """Return the columns of benign clients and of privacy."""
    names = [(metric, f"benign_{metric.field()}") for metric in chosen]
    return [
        *(_metric(metric, name, f"{metric.label(unit=True)} of benign clients", 2) for metric, name in names),
        Column("epsilon", lambda row: number(row.get("epsilon"), 2), spare=4),
    ]


def task_columns(rows: Sequence[Figures], metrics: Iterable[Metric]) -> list[Column[Figures]]:
    """Return the columns of a table with a line per label column of a run of these metrics."""
    parts = [(metric, part) for metric in metrics for part in ("test", "val")]
    scores = [_metric(metric, metric.field(part), metric.label(part), 0) for metric, part in parts]
    return [Column("task", lambda row: words(row["task"])), *filled(scores, rows)]


def _headlines(known: Mapping[str, Metric], chosen: Sequence[Metric]) -> list[Column[Figures]]:
    """Return the columns of the runs' headlines; where they have several, one that says which comes first."""

    def column(title: str, name: Callable[[Metric], str], spare: int) -> Column[Figures]:
        def entry(row: Figures) -> Entry:
            metric = known[row["metric"]]
            return score(metric, row.get(name(metric)))

        return Column(title, entry, spare=spare)

    alone = len(chosen) == 1
    which = Column[Figures]("metric", lambda row: words(known[row["metric"]].heading))
    return [
        *([] if alone else [which]),
        column(f"{chosen[0].label(unit=True) if alone else 'score'} last", lambda metric: metric.field(), 0),
        column(BEST, lambda metric: metric.field() + RULES[BEST], 3),
        column(PUBLISHED, lambda metric: metric.field() + RULES[PUBLISHED], 11),
        column("constant", lambda metric: "constant", 9),
        column("without twins", lambda metric: f"{metric.field()}_without_twins", 13),
        column("worst client", lambda metric: f"worst_client_{metric.name}", 8),
        column("lowest decile", lambda metric: f"lowest_decile_{metric.name}", 12),
    ]


_OBJECTIVE = Column[Figures]("objective", lambda row: words(row["objective"], "name"), spare=4)


def _seed(row: Figures) -> Entry:
    seed = row["seed"]
    return Entry(str(seed), seed) if isinstance(seed, int) else words(seed)


def _status(row: Figures) -> Entry:
    return words(row["status"], "" if row["status"] == "complete" else "warning")


def _rounds(row: Figures) -> Entry:
    return Entry(f"{row['rounds']}/{row['rounds_planned']}", row["rounds"])


def _metric(metric: Metric, name: str, title: str, spare: int) -> Column[Figures]:
    return Column(title, lambda row: score(metric, row.get(name)), spare=spare)


def _number(title: str, name: str, digits: int, spare: int) -> Column[Figures]:
    return Column(title, lambda row: number(row.get(name), digits), spare=spare)


def _to_target(unit: str, digits: int, spare: int) -> Column[Figures]:
    def entry(row: Figures) -> Entry:
        reached = row["to_target"]
        return words("never") if reached is None else number(reached.get(unit), digits)

    return Column(f"{_SHORT.get(unit, unit)} to target", entry, spare=spare)


_SHORT = {"seconds": "s", "joules": "J"}
