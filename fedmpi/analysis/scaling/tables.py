"""Strong, weak and throughput scaling: which runs belong together, speedup, efficiency, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from fedmpi.analysis.scaling.model import Model, fit, held_out
from fedmpi.analysis.scaling.points import Point


@dataclass(frozen=True)
class Row:
    """One number of ranks.

    Attributes
    ----------
    clients, ranks, counted : int
        Clients, ranks, and the ranks that efficiency divides by.
    runs : int
    seconds, low, high : float or None
        Median over runs of a round's median seconds, and their extremes; None where only predicted.
    speedup, efficiency : float or None
        Against the base: the fewest ranks that were measured.
    predicted : float
        By the model fitted to all runs of the case.
    held_out : float or None
        By a model that saw no run on so many ranks.
    crowded : bool
        More ranks than cores.
    """

    clients: int
    ranks: int
    counted: int
    runs: int
    seconds: float | None
    low: float | None
    high: float | None
    speedup: float | None
    efficiency: float | None
    predicted: float
    held_out: float | None
    crowded: bool


@dataclass(frozen=True)
class Series:
    """One case over ranks (strong), or growing with the ranks (weak)."""

    title: str
    mode: str
    rows: tuple[Row, ...]
    model: Model

    @property
    def base(self) -> Row:
        """The measured row with the fewest ranks."""
        return next(row for row in self.rows if row.seconds is not None)


def strong(points: Sequence[Point], with_server: bool, wanted: Sequence[int]) -> list[Series]:
    """Return the cases that were run on several numbers of ranks, or on one where predictions are wanted."""
    found = []
    for members in _grouped(points, [each.case for each in points]):
        numbers = sorted({each.ranks for each in members})
        if len(numbers) > 1 or wanted:
            model = fit(members, points)
            rows = [_strong_row(members, points, model, number, with_server) for number in numbers]
            base = rows[0]
            extra = [number for number in sorted(set(wanted)) if number not in numbers]
            rows += [_predicted_row(members[0], model, number, with_server) for number in extra]
            rows = [_related(row, base, row.counted / base.counted) for row in rows]
            rows.sort(key=lambda row: row.ranks)
            found.append(Series(members[0].title, "strong", tuple(rows), model))
    return found


def weak(points: Sequence[Point], with_server: bool) -> list[Series]:
    """Return the families of runs with as many clients per counted rank on several numbers of ranks."""
    marks = [f"{each.clients / _counted(each.ranks, with_server):.6g} {each.kind}" for each in points]
    found = []
    for members in _grouped(points, marks):
        numbers = sorted({each.ranks for each in members})
        sizes = {each.clients for each in members}
        if len(numbers) < 2 or len(sizes) < 2:
            continue
        model = fit(members, points)
        rows = [_weak_row(members, model, number, with_server) for number in numbers]
        base = rows[0]
        load = members[0].clients / _counted(members[0].ranks, with_server)
        title = f"{members[0].title.rpartition(',')[0]}, {load:g} clients per {_resource(with_server)}"
        found.append(Series(title, "weak", tuple(_related(row, base, 1.0) for row in rows), model))
    return found


def _resource(with_server: bool) -> str:
    return "rank" if with_server else "worker"


def _grouped(points: Sequence[Point], marks: Sequence[str]) -> list[list[Point]]:
    found: dict[str, list[Point]] = {}
    for each, mark in zip(points, marks, strict=True):
        found.setdefault(mark, []).append(each)
    return list(found.values())


def _counted(ranks: int, with_server: bool) -> int:
    return ranks if with_server else max(ranks - 1, 1)


def _measured_row(members: Sequence[Point], ranks: int, with_server: bool, predicted: float) -> Row:
    chosen = [each for each in members if each.ranks == ranks]
    seconds = [each.seconds for each in chosen]
    return Row(
        clients=chosen[0].clients,
        ranks=ranks,
        counted=_counted(ranks, with_server),
        runs=len(chosen),
        seconds=float(np.median(seconds)),
        low=min(seconds),
        high=max(seconds),
        speedup=None,
        efficiency=None,
        predicted=predicted,
        held_out=None,
        crowded=any(each.crowded for each in chosen),
    )


def _strong_row(
    members: Sequence[Point], points: Sequence[Point], model: Model, ranks: int, with_server: bool
) -> Row:
    like = next(each for each in members if each.ranks == ranks)
    row = _measured_row(members, ranks, with_server, model.seconds(like, ranks))
    return Row(**{**vars(row), "held_out": held_out(members, points, ranks)})


def _weak_row(members: Sequence[Point], model: Model, ranks: int, with_server: bool) -> Row:
    like = next(each for each in members if each.ranks == ranks)
    return _measured_row(members, ranks, with_server, model.seconds(like, ranks))


def _predicted_row(like: Point, model: Model, ranks: int, with_server: bool) -> Row:
    counted = _counted(ranks, with_server)
    predicted = model.seconds(like, ranks)
    return Row(like.clients, ranks, counted, 0, None, None, None, None, None, predicted, None, False)


def _related(row: Row, base: Row, ideal: float) -> Row:
    """Return a row with speedup and efficiency against the base; of the prediction where nothing is measured.

    Parameters
    ----------
    ideal : float
        Speedup of efficiency 1: as many more ranks (strong); 1 where the work grew as the ranks did (weak).
    """
    assert base.seconds is not None
    speedup = base.seconds / (row.seconds if row.seconds is not None else row.predicted)
    return Row(**{**vars(row), "speedup": speedup, "efficiency": speedup / ideal})


@dataclass(frozen=True)
class Together:
    """Runs of one folder that were done at the same time: MLPerf's throughput mode.

    Attributes
    ----------
    cases : int
    most : int
        How many ran at the same moment.
    ranks : tuple of int
        Ranks of a case.
    seconds : float
        From the first start to the last end.
    """

    folder: Path
    cases: int
    most: int
    ranks: tuple[int, ...]
    seconds: float

    @property
    def per_hour(self) -> float:
        """Cases per hour."""
        return 3600 * self.cases / self.seconds


def together(points: Sequence[Point]) -> list[Together]:
    """Return the folders whose runs overlapped in time."""
    found = []
    for members in _grouped(points, [str(each.folder.parent) for each in points]):
        spans = [(_time(each.started), _time(each.ended)) for each in members if each.started and each.ended]
        if len(spans) < 2:
            continue
        begin, end = min(first for first, _ in spans), max(last for _, last in spans)
        most = max(sum(first <= at < last for first, last in spans) for at, _ in spans)
        ranks = tuple(sorted({each.ranks for each in members}))
        if end > begin and most > 1:
            found.append(Together(members[0].folder.parent, len(spans), most, ranks, end - begin))
    return found


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
