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
    speedup, efficiency : float
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
    speedup: float
    efficiency: float
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
    cases = grouped(points, lambda each: each.case).values()
    several = [members for members in cases if len({each.ranks for each in members}) > 1 or wanted]
    return [_series("strong", members, points, with_server, wanted) for members in several]


def weak(points: Sequence[Point], with_server: bool) -> list[Series]:
    """Return the families of runs with as many clients per counted rank on several numbers of ranks."""

    def mark(each: Point) -> str:
        return f"{each.clients / _counted(each.ranks, with_server):.6g} {each.kind}"

    found = []
    for members in grouped(points, mark).values():
        if min(len({each.ranks for each in members}), len({each.clients for each in members})) > 1:
            load = members[0].clients / _counted(members[0].ranks, with_server)
            per = f"{load:g} clients per {'rank' if with_server else 'worker'}"
            title = f"{members[0].title.rpartition(',')[0]}, {per}"
            found.append(replace(_series("weak", members, points, with_server), title=title))
    return found


def _counted(ranks: int, with_server: bool) -> int:
    return ranks if with_server else max(ranks - 1, 1)


def _series(
    mode: str,
    members: Sequence[Point],
    points: Sequence[Point],
    with_server: bool,
    wanted: Sequence[int] = (),
) -> Series:
    """Return what was measured on each number of ranks, and what is predicted for these and the wanted ones.

    The speedup is against the fewest ranks that were measured; of the prediction where nothing is measured.
    Efficiency 1 is as many times the speed as ranks (strong), or the same, as the work grew with them (weak).
    """
    model, by_ranks = fit(members, points), grouped(members, lambda each: each.ranks)
    base = min(by_ranks)
    base_seconds = float(np.median([each.seconds for each in by_ranks[base]]))
    rows = []
    for ranks in sorted({*by_ranks, *wanted}):
        chosen, counted = by_ranks.get(ranks, []), _counted(ranks, with_server)
        like, seconds = (chosen or members)[0], [each.seconds for each in chosen]
        median, predicted = float(np.median(seconds)) if seconds else None, model.seconds(like, ranks)
        speedup = base_seconds / (predicted if median is None else median)
        row = Row(
            clients=like.clients,
            ranks=ranks,
            counted=counted,
            runs=len(chosen),
            seconds=median,
            low=min(seconds, default=None),
            high=max(seconds, default=None),
            speedup=speedup,
            efficiency=speedup / (counted / _counted(base, with_server) if mode == "strong" else 1.0),
            predicted=predicted,
            held_out=held_out(members, points, ranks) if chosen and mode == "strong" else None,
            crowded=any(each.crowded for each in chosen),
        )
        rows.append(row)
    return Series(members[0].title, mode, with_server, tuple(rows), model, members[0])


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
