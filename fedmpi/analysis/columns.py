"""The columns of tables of runs, clients and label columns, and what a metric's value shows in any table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from fedmpi.analysis.scores import BEST, PUBLISHED, RULES
from fedmpi.judging.estimates import Estimate
from fedmpi.metrics.metric import Metric
from fedmpi.store.schema import MEAN_MODEL, SECURE_STEPS
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
    benign = [(metric, f"{metric.label(unit=True)} of benign clients") for metric in chosen]
    last, *others = _headlines(known, chosen)
    complete = all(row["status"] == "complete" for row in rows)
    listed: list[Column[Figures]] = [
        Column("case", itemgetter("case")),
        Column("dataset", lambda row: words(row["dataset"], "name")),
        Column("algorithm", lambda row: words(row["algorithm"], "name")),
        Column("objective", lambda row: words(row["objective"], "name"), spare=4),
        Column("seed", lambda row: row["seed"] if isinstance(row["seed"], int) else words(row["seed"])),
        Column("status", _status, spare=4 if complete else 2),
        Column(
            "rounds", lambda row: Entry(f"{row['rounds']}/{row['rounds_planned']}", row["rounds"]), spare=6
        ),
        Column("ranks", lambda row: words(",".join(map(str, row["ranks"]))), spare=14),
        last,
        *filled(others, rows),
        *(_metric(metric, metric.field(), metric.label(unit=True), 10) for metric in further),
        *filled([_metric(metric, MEAN_MODEL + metric.field(), "mean model", 2) for metric in chosen], rows),
        *filled([_metric(metric, f"benign_{metric.field()}", title, 2) for metric, title in benign], rows),
        *filled([_number("epsilon", "epsilon", 2, 4)], rows),
        _number("s/round median", "round_seconds_median", 3, 15),
        _number("total s", "total_seconds", 1, 16),
        _number("model GFLOP", "model_gflop", 2, 17),
        _number("client MB", "client_megabytes", 2, 18),
        _number("MB up", "client_megabytes_up", 2, 19),
        *_of_devices(rows),
        *filled([_number("J", "joules", 0, 18)], rows),
        *filled([_number(f"{name} s", f"{name}_seconds", 3, 20) for name in SECURE_STEPS], rows),
    ]
    if not any(metric.scope == "all" for metric in chosen):
        del listed[3]
    if any("target" in row for row in rows):
        listed += [_to_target("rounds", "rounds", 0, 1), _to_target("seconds", "s", 1, 5)]
        listed += [_to_target("virtual_seconds", "virtual s", 1, 1)] if _clocked(rows) else []
        listed.append(_to_target("client_bytes", "MB", 2, 5, 1e-6))
        if any("joules" in (row["to_target"] or {}) for row in rows):
            listed.append(_to_target("joules", "J", 0, 6))
    return listed


def client_columns(rows: Sequence[Figures], metrics: Iterable[Metric]) -> list[Column[Figures]]:
    """Return the columns of a table with a line per client of a run of these metrics, the headline first."""
    known = list(metrics)
    scores = [
        _metric(metric, name, title, spare)
        for metric in known
        for name, title, spare in (
            (metric.field("val"), metric.label("val", unit=True), 1),
            (metric.field(), f"{metric.label(unit=True)} last", 0),
            (metric.field() + RULES[BEST], BEST, 2),
            (metric.field() + RULES[PUBLISHED], PUBLISHED, 5),
            (f"{metric.field()}_without_twins", "without twins", 6),
        )
    ]
    scores += [_metric(headline, "constant", "constant", 6) for headline in known[:1]]
    hostile = Column[Figures]("attacker", lambda row: "yes" if row.get("attacker") else None, spare=4)
    return [
        Column("client", itemgetter("client")),
        *filled([hostile], rows),
        _number("rounds", "rounds", 0, 4),
        _number("train loss", "train_loss", 4, 3),
        *filled(scores, rows),
        _number("model GFLOP", "model_gflop", 2, 7),
        _number("client MB", "client_megabytes", 2, 8),
        _number("MB up", "client_megabytes_up", 2, 9),
    ]


def task_columns(rows: Sequence[Figures], metrics: Iterable[Metric]) -> list[Column[Figures]]:
    """Return the columns of a table with a line per label column of a run of these metrics."""
    parts = [(metric, part) for metric in metrics for part in ("test", "val")]
    scores = [_metric(metric, metric.field(part), metric.label(part), 0) for metric, part in parts]
    return [Column("task", itemgetter("task")), *filled(scores, rows)]


def _headlines(known: Mapping[str, Metric], chosen: Sequence[Metric]) -> list[Column[Figures]]:
    """Return the columns of the runs' headlines; where they have several, one that says which comes first."""

    def column(title: str, name: str, spare: int) -> Column[Figures]:
        def entry(row: Figures) -> Entry:
            metric = known[row["metric"]]
            return score(metric, row.get(name.format(field=metric.field(), name=metric.name)))

        return Column(title, entry, spare=spare)

    alone = len(chosen) == 1
    which = Column[Figures]("metric", lambda row: words(known[row["metric"]].heading))
    return [
        *([] if alone else [which]),
        column(f"{chosen[0].label(unit=True) if alone else 'score'} last", "{field}", 0),
        column(BEST, "{field}" + RULES[BEST], 3),
        column(PUBLISHED, "{field}" + RULES[PUBLISHED], 11),
        column("constant", "constant", 9),
        column("without twins", "{field}_without_twins", 13),
        column("worst client", "worst_client_{name}", 8),
        column("lowest decile", "lowest_decile_{name}", 12),
    ]


def _clocked(rows: Sequence[Figures]) -> bool:
    """Return whether any run's virtual seconds are those of its devices."""
    return any("virtual_clock" in row for row in rows)


def _of_devices(rows: Sequence[Figures]) -> list[Column[Figures]]:
    """Return the columns of virtual time, and of what devices did where runs have them."""
    return [
        _number("virtual s", "virtual_seconds", 1, 3 if _clocked(rows) else 19),
        *filled([_percent("in use %", "utilisation"), _percent("stale %", "stale_share")], rows),
        *filled([_number("staleness", "mean_staleness", 1, 7)], rows),
        *filled([_number("wasted GFLOP", "wasted_gflop", 2, 7)], rows),
    ]


def _status(row: Figures) -> Entry:
    return words(row["status"], "" if row["status"] == "complete" else "warning")


def _metric(metric: Metric, name: str, title: str, spare: int) -> Column[Figures]:
    return Column(title, lambda row: score(metric, row.get(name)), spare=spare)


def _number(title: str, name: str, digits: int, spare: int) -> Column[Figures]:
    return Column(title, lambda row: number(row.get(name), digits), spare=spare)


def _percent(title: str, name: str) -> Column[Figures]:
    return Column(title, lambda row: number(100 * row[name] if name in row else None, 1), spare=6)


def _to_target(name: str, unit: str, digits: int, spare: int, scale: float = 1.0) -> Column[Figures]:
    def entry(row: Figures) -> Entry:
        reached = row["to_target"]
        if reached is None:
            return words("never")
        return number(scale * reached[name] if name in reached else None, digits)

    return Column(f"{unit} to target", entry, spare=spare)
