"""``fedmpi scaling``: strong, weak and throughput tables, the fitted model, predictions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from fedmpi.analysis.discovery import each_run, without_copies
from fedmpi.analysis.scaling.model import Model
from fedmpi.analysis.scaling.points import Point, point
from fedmpi.analysis.scaling.tables import Row, Series, Together, series, together
from fedmpi.analysis.scores import TOGETHER
from fedmpi.cli.options import Json, Runs, whole_numbers
from fedmpi.cli.terminal import counted, left_out, print_json, show
from fedmpi.errors import BadInput
from fedmpi.tables.table import Column, Entry, Table

_NOTHING = (
    "No case was run on several numbers of ranks of one system, and no runs have as many clients per rank, "
    "the server's counted or not; --predict 8,16 predicts from one"
)


def scaling(
    runs: Runs,
    without_server: bool = False,
    predict: Annotated[str | None, typer.Option(metavar="8,16")] = None,
    as_json: Json = False,
) -> int:
    """Strong, weak and throughput scaling of runs, and what a fitted model predicts.

    Parameters
    ----------
    without_server
        Efficiency divides by the ranks that host clients.
    predict
        Numbers of ranks to predict rounds per second for.

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).

    Examples
    --------
    fedmpi scaling scaling/strong --predict 8,16
    """
    wanted = [] if predict is None else whole_numbers(predict, "--predict", 1, 99_999)
    complaints: list[str] = []
    points = _points(runs, complaints)
    if not points:
        raise BadInput("; ".join(complaints) or "scaling: name at least one run")
    found = series(points, not without_server, wanted)
    if as_json:
        print_json(_record(points, found))
    else:
        show(*_parts(points, found, not without_server))
    return left_out(complaints)


def _points(paths: Sequence[Path], complaints: list[str]) -> list[Point]:
    points = []
    for run in without_copies(each_run(paths, complaints), complaints):
        found = point(run) if run.status == "complete" else None
        if found is None:
            complaints.append(f"{run.folder}: {run.status}, {run.rounds_completed} rounds, left out")
        else:
            points.append(found)
    return points


def _parts(points: Sequence[Point], found: Sequence[Series], with_server: bool) -> Iterator[Any]:
    """Yield the lines and tables that show the runs."""
    systems = Counter(each.system for each in points)
    if len(systems) > 1:
        listed = "; ".join(f"{name} ({counted(count, 'run')})" for name, count in systems.items())
        yield f"Runs of several systems, each by itself, no speedup across them: {listed}"
    for each in found:
        base, verb = counted(each.base.ranks, "rank"), "counts" if each.with_server else "does not count"
        title = f"{each.mode.capitalize()} scaling: {each.title}; base: {base}; the server's rank {verb}"
        yield Table(_SCALING, each.rows, title, [_MARKS])
        yield f"Model: {_described(each.model)}"
        if each.mode == "strong" and not math.isnan(each.model.step):
            yield _limits(each)
        if each.with_server != with_server:
            yield "Clients per rank are equal in this way of counting only, not in the one asked for"
        if any(row.crowded for row in each.rows):
            yield "! more ranks than cores: the scheduler is measured, too"
    if not found:
        yield _NOTHING
    ordered = sorted(points, key=lambda point: (point.title, point.ranks, str(point.folder)))
    yield Table(_THROUGHPUT, ordered, "Throughput, over all rounds but the first")
    if grouped := together(points):
        yield Table(_TOGETHER, grouped, "Cases done at the same time")


def _seconds(row: Row) -> float:
    """Return a round's seconds, predicted where none were measured."""
    return row.predicted if row.seconds is None else row.seconds


def _extremes(row: Row) -> Entry | None:
    return Entry(f"{row.low:.4f} to {row.high:.4f}", row.low or 0.0) if row.runs > 1 else None


def _or_predicted(figure: Callable[[Row], float], form: str) -> Callable[[Row], Entry | None]:
    """Return a column's values, with a mark where they are predicted."""

    def value(row: Row) -> Entry | None:
        found = figure(row)
        return None if math.isnan(found) else Entry(f"{found:{form}}{' p' * (row.seconds is None)}", found)

    return value


def _error(predicted: float | None, seconds: float | None) -> float | None:
    return None if predicted is None or seconds is None else 100 * (predicted / seconds - 1)


_SCALING: tuple[Column[Row], ...] = (
    Column("clients", attrgetter("clients"), spare=2),
    Column("ranks", lambda row: Entry(f"{row.ranks}{'!' * row.crowded}", row.ranks)),
    Column("runs", lambda row: row.runs or None, spare=3),
    Column("s/round", attrgetter("seconds"), format=".4f"),
    Column("min to max", _extremes, numeric=True, spare=4),
    Column("rounds/s", _or_predicted(lambda row: 1 / _seconds(row), ".2f")),
    Column("speedup", _or_predicted(attrgetter("speedup"), ".2f")),
    Column("efficiency %", _or_predicted(lambda row: 100 * row.efficiency, ".0f")),
    Column("predicted", attrgetter("predicted"), format=".4f"),
    Column("error %", lambda row: _error(row.predicted, row.seconds), format="+.0f", spare=1),
    Column("held out", attrgetter("held_out"), format=".4f"),
    Column("error %", lambda row: _error(row.held_out, row.seconds), format="+.0f", spare=1),
)
_MARKS = "p: predicted. Held out: predicted from the runs on other numbers of ranks"


def _limits(series: Series) -> str:
    """Return how many workers can be of use, and what a round on the most ranks is made of."""
    useful, ranks = series.model.workers_of_use(series.like), series.rows[-1].ranks
    parts = series.model.parts(series.like, ranks)
    made_of = ", ".join(f"{name} {1e3 * seconds:.3g} ms" for name, seconds in parts.items())
    return (
        f"More than {useful:.1f} workers cannot help: the heaviest client has 1/{useful:.1f} of the work. "
        f"A round on {counted(ranks, 'rank')}: {made_of}"
    )


def _described(model: Model) -> str:
    """Return the coefficients in words."""
    if math.isnan(model.step):
        return f"none; {TOGETHER}"
    parts = [
        f"training {1e6 * model.step:.3g} µs a step + {_rate(model.flop)}",
        f"evaluation {1e6 * model.client:.3g} µs a client + {_rate(model.evaluated_flop)}",
        f"server {1e3 * model.server:.3g} ms, record {1e3 * model.record:.3g} ms",
        f"rest {1e3 * model.rest_alone:.3g} ms on one rank, {1e3 * model.rest:.3g} ms on more",
    ]
    for name, each in model.networks.items():
        speed = f"{1e-9 / each.per_byte:.3g} GB/s" if each.per_byte > 0 else "no cost per byte"
        parts.append(f"{name} {1e6 * each.latency:.3g} µs x log2 P a call, {speed} ({each.samples} runs)")
    return "; ".join(parts)


def _rate(seconds_per_flop: float) -> str:
    return f"FLOPs at {1e-9 / seconds_per_flop:.3g} GFLOP/s" if seconds_per_flop > 0 else "no cost per FLOP"


def _rate_of(name: str) -> Callable[[Point], Entry | None]:
    """Return a column's rates, four digits, of thousands and more all those before the point."""

    def value(point: Point) -> Entry | None:
        rate = point.rates.get(name, math.nan)
        return None if math.isnan(rate) else Entry(format(rate, ",.0f" if rate >= 1000 else ".4g"), rate)

    return value


_THROUGHPUT: tuple[Column[Point], ...] = (
    Column("case", lambda point: f"{point.folder.name}: {point.title.rpartition(',')[0]}"),
    Column("clients", attrgetter("clients"), spare=2),
    Column("ranks", attrgetter("ranks")),
    Column("rounds/s", _rate_of("rounds")),
    Column("client updates/s", _rate_of("updates")),
    Column("graphs/s", _rate_of("graphs"), spare=3),
    Column("model GFLOP/s", _rate_of("gflop"), spare=1),
)
_TOGETHER: tuple[Column[Together], ...] = (
    Column("folder", attrgetter("folder")),
    Column("cases", attrgetter("cases")),
    Column("at once, at most", attrgetter("most")),
    Column("ranks a case", lambda found: ", ".join(map(str, found.ranks)), numeric=True),
    Column("hours", lambda found: found.seconds / 3600, format=".3f"),
    Column("cases per hour", attrgetter("per_hour"), format=".1f"),
)


def _record(points: Sequence[Point], found: Sequence[Series]) -> dict[str, Any]:
    return {
        "series": [
            {
                "title": each.title,
                "mode": each.mode,
                "system": each.like.system,
                "with_server": each.with_server,
                "base_ranks": each.base.ranks,
                "rows": [asdict(row) for row in each.rows],
                "model": asdict(each.model),
            }
            for each in found
        ],
        "throughput": [
            {"folder": str(p.folder), "system": p.system, "clients": p.clients, "ranks": p.ranks, **p.rates}
            for p in points
        ],
        "together": [
            {**asdict(t), "folder": str(t.folder), "per_hour": t.per_hour} for t in together(points)
        ],
    }
