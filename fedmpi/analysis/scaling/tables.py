"""Strong, weak and throughput scaling: which runs belong together, speedup, efficiency, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.scaling.model import Model, fit, held_out
from fedmpi.analysis.scaling.points import Point
from fedmpi.clock import seconds_of


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
    """One case over ranks (strong), or growing with the ranks (weak), on one system."""

    title: str
    mode: str
    with_server: bool
    """Whether the server's rank is counted."""
    rows: tuple[Row, ...]
    model: Model
    like: Point
    """A run whose clients the others have, too; of weak scaling the one on the fewest ranks."""

    @property
    def base(self) -> Row:
        """The measured row with the fewest ranks."""
        return next(row for row in self.rows if row.seconds is not None)


def series(points: Sequence[Point], with_server: bool, wanted: Sequence[int]) -> list[Series]:
    """Return what was run on several numbers of ranks, each system by itself: its times are its own.

    Where no runs have as many clients per counted rank, weak scaling counts the server's rank the other way.
    """
    systems = grouped(points, lambda each: each.system)
    found = []
    for system, members in systems.items():
        growing = weak(members, with_server) or weak(members, not with_server)
        for each in (*strong(members, with_server, wanted), *growing):
            title = f"{each.title} ({system})" if len(systems) > 1 else each.title
            found.append(replace(each, title=title))
    return found


def strong(points: Sequence[Point], with_server: bool, wanted: Sequence[int]) -> list[Series]:
    """Return the cases that were run on several numbers of ranks, or on one where predictions are wanted."""
    found = []
    for members in grouped(points, lambda each: each.case).values():
        numbers = {each.ranks for each in members}
        if len(numbers) > 1 or wanted:
            model = fit(members, points)
            rows = [_row(members, model, number, with_server) for number in sorted(numbers.union(wanted))]
            base = next(row for row in rows if row.runs)
            rows = [_related(row, base, row.counted / base.counted) for row in rows]
            apart = {row.ranks: held_out(members, points, row.ranks) for row in rows if row.runs}
            rows = [replace(row, held_out=apart.get(row.ranks)) for row in rows]
            found.append(Series(members[0].title, "strong", with_server, tuple(rows), model, members[0]))
    return found


def weak(points: Sequence[Point], with_server: bool) -> list[Series]:
    """Return the families of runs with as many clients per counted rank on several numbers of ranks."""

    def mark(each: Point) -> str:
        return f"{each.clients / _counted(each.ranks, with_server):.6g} {each.kind}"

    found = []
    for members in grouped(points, mark).values():
        numbers = sorted({each.ranks for each in members})
        sizes = {each.clients for each in members}
        if len(numbers) < 2 or len(sizes) < 2:
            continue
        model = fit(members, points)
        rows = [_row(members, model, number, with_server) for number in numbers]
        load = members[0].clients / _counted(members[0].ranks, with_server)
        resource = "rank" if with_server else "worker"
        title = f"{members[0].title.rpartition(',')[0]}, {load:g} clients per {resource}"
        related = tuple(_related(row, rows[0], 1.0) for row in rows)
        found.append(Series(title, "weak", with_server, related, model, members[0]))
    return found


def _counted(ranks: int, with_server: bool) -> int:
    return ranks if with_server else max(ranks - 1, 1)


def _row(members: Sequence[Point], model: Model, ranks: int, with_server: bool) -> Row:
    """Return what was measured on so many ranks, and what is predicted for them."""
    chosen = [each for each in members if each.ranks == ranks]
    like = (chosen or members)[0]
    seconds = [each.seconds for each in chosen]
    return Row(
        clients=like.clients,
        ranks=ranks,
        counted=_counted(ranks, with_server),
        runs=len(chosen),
        seconds=float(np.median(seconds)) if seconds else None,
        low=min(seconds, default=None),
        high=max(seconds, default=None),
        speedup=None,
        efficiency=None,
        predicted=model.seconds(like, ranks),
        held_out=None,
        crowded=any(each.crowded for each in chosen),
    )


def _related(row: Row, base: Row, ideal: float) -> Row:
    """Return a row with speedup and efficiency against the base; of the prediction where nothing is measured.

    Parameters
    ----------
    ideal : float
        Speedup of efficiency 1: as many more ranks (strong); 1 where the work grew as the ranks did (weak).
    """
    assert base.seconds is not None
    speedup = base.seconds / (row.seconds if row.seconds is not None else row.predicted)
    return replace(row, speedup=speedup, efficiency=speedup / ideal)


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
    for members in grouped(points, lambda each: str(each.folder.parent)).values():
        ended = [each for each in members if each.started and each.ended]
        spans = [(seconds_of(each.started), seconds_of(each.ended)) for each in ended]
        if len(spans) < 2:
            continue
        begin, end = min(first for first, _ in spans), max(last for _, last in spans)
        most = max(sum(first <= at < last for first, last in spans) for at, _ in spans)
        ranks = tuple(sorted({each.ranks for each in members}))
        if end > begin and most > 1:
            found.append(Together(members[0].folder.parent, len(spans), most, ranks, end - begin))
    return found
