"""``fedmpi watch``: a running job, live, from its event log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from fedmpi.analysis.columns import score
from fedmpi.analysis.discovery import folder_of, run_paths
from fedmpi.analysis.progress import RunProgress
from fedmpi.analysis.scores import TOGETHER, is_together
from fedmpi.cli.progress import round_line
from fedmpi.cli.terminal import console, counted, plain
from fedmpi.comm.interrupt import Stopped
from fedmpi.errors import BadInput, Diverged
from fedmpi.store import events, lock
from fedmpi.store.events import Round
from fedmpi.store.tail import Tail
from fedmpi.tables.table import Table, listed, number
from fedmpi.tables.terminal import OnTerminal
from fedmpi.visible import visible

_CODES = {"complete": 0, "failed": 1, "diverged": Diverged.exit_code}
_STYLES = {"running": "green", "complete": "green", "waiting": "", "interrupted": "yellow", "stale": "yellow"}
_LOOK_FOR_OTHERS_S = 10.0
_BLOCKS = "▁▂▃▄▅▆▇█"
_LONGEST_S = 1e9
"""A run that would take 30 years has no end that is worth a date."""
_NUMBERS_WIDTH = 52
"""Columns that the numbers of a client take."""


class Watch:
    """What is watched: a run, or of a folder of runs the one whose log was written last.

    Attributes
    ----------
    status : str
        That of the log; "stale" where it says running and no live process holds the folder.
    status_line : str
        The status with its reason, and whether watching goes on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said = Path(), ""
        self.single = run_paths(path) == [folder_of(path)]
        self.folder = Path()
        self._switch()
        if self.single and not (self.folder / events.NAME).exists() and lock.state(self.folder) != "live":
            raise BadInput(
                f"{self.folder}: it has no event log ({events.NAME}) to watch; fedmpi report shows its record"
            )

    def _switch(self) -> None:
        """Go on to the run that was written to last, if that is another one."""
        self._next_look = time.monotonic() + _LOOK_FOR_OTHERS_S
        folders = [path.parent if path.is_file() else path for path in run_paths(self._path)]
        newest = max(folders, key=_last_change)
        self.others = len(folders) - 1
        if newest != self.folder:
            self.folder, self.progress, self._tail = newest, RunProgress(), Tail(newest / events.NAME)

    def look(self) -> list[Round]:
        """Return the rounds that were finished since the last look."""
        if not self.single and time.monotonic() > self._next_look:
            self._switch()
        rounds = self.progress.apply(self._tail.poll())
        self.status = self.progress.status
        reason = f": {self.progress.reason}" if self.progress.reason else ""
        if self.status == "running" and lock.state(self.folder) != "live":
            self.status = "stale"
            reason = ": it was killed, no process works on it; resume it, and this goes on"
        if self.status == "interrupted":
            reason += "; this goes on when it is resumed"
        self.status_line = f"{self.status}{reason}"
        return rounds

    def news(self, rounds: Sequence[Round]) -> Iterator[str]:
        """Yield a line per round and per change of status, for a log."""
        progress, (folder, status) = self.progress, self._said
        self._said = self.folder if progress.start else Path(), self.status
        if progress.start and folder != self.folder:
            yield progress.title
        for each in rounds:
            groups = counted(len(np.unique(each.results["group"])), "group")
            yield round_line(progress.metrics, each, progress.planned, f"{groups}  ")[0]
        if status != self.status:
            yield self.status_line

    @property
    def code(self) -> int | None:
        """The exit code of a single run that has ended."""
        return _CODES.get(self.status) if self.single else None


def _last_change(folder: Path) -> float:
    with suppress(OSError):
        return (folder / events.NAME).stat().st_mtime
    return 0.0


def watch(run: Path, interval: Annotated[float, typer.Option(min=0.01)] = 1.0, once: bool = False) -> int:
    """Watch a running job: rounds, accuracies, clusters, rate and estimated end.

    Parameters
    ----------
    run
        A run folder, or a folder of runs: the one written to last.
    interval
        Seconds between two looks.
    once
        Show how far it is, and stop.

    Returns
    -------
    int
        0; of a single run that ended: 1 if it failed, 3 if it diverged.

    Examples
    --------
    fedmpi watch results/runs/gcfl/proteins/fedavg
    """
    watched = Watch(run)
    screen = console(sys.stdout)
    try:
        if once:
            watched.look()
            screen.print(_view(watched, screen.width))
            return 0
        return _follow(watched, screen, interval)
    except Stopped:
        return 0


def _follow(watched: Watch, screen: Console, interval: float) -> int:
    """Show a run until it ends: a view of it on a terminal, lines elsewhere."""
    is_live = screen.is_terminal
    shown = Live(console=screen, auto_refresh=False, vertical_overflow="crop") if is_live else nullcontext()
    with shown as live:
        while True:
            rounds = watched.look()
            if live is not None:
                live.update(_view(watched, screen.width), refresh=True)
            else:
                for line in watched.news(rounds):
                    screen.print(line, soft_wrap=True)
                screen.file.flush()
            if watched.code is not None:
                return watched.code
            time.sleep(interval)


def _view(watched: Watch, width: int) -> RenderableType:
    """Return everything on one screen; of a low one, what matters less is below its end."""
    progress = watched.progress
    if progress.start is None:
        return plain(f"{watched.folder}: nothing in its event log yet")
    more = f"   (newest of {watched.others + 1} runs)" if watched.others else ""
    title, state = (
        plain(progress.title + more, "bold"),
        plain(_state(watched), _STYLES.get(watched.status, "red")),
    )
    parts: list[RenderableType] = [title, state, Text(_pace(watched)), _curves(progress, width)]
    if progress.current:
        together = is_together(progress.config)
        parts += [_clusters(progress), plain(TOGETHER) if together else _clients(progress, width)]
    return Group(*parts)


def _state(watched: Watch) -> str:
    progress = watched.progress
    ranks = f" on {counted(progress.ranks, 'rank')}" if progress.ranks else ""
    attempts = f", start {progress.attempts}" if progress.attempts > 1 else ""
    size = f"{counted(len(progress.clients), 'client')}{ranks}{attempts}"
    last = datetime.fromisoformat(progress.last_time).astimezone()
    return f"{watched.status_line}; {size}; last event {last:%Y-%m-%d %H:%M:%S}"


def _pace(watched: Watch) -> str:
    progress = watched.progress
    pace, left = progress.seconds_per_round, progress.seconds_left
    text = f"round {progress.current} of {progress.planned}; {_duration(progress.seconds)} so far"
    if pace > 0:
        text += f"; {1 / pace:.3g} rounds/s"
        if watched.status == "running" and 0 < left < _LONGEST_S:
            text += f"; {_duration(left)} left, end {datetime.now() + timedelta(seconds=left):%a %H:%M}"
    waits = not watched.single and progress.status in _CODES
    return f"{text}{'; waiting for another run' * waits}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _curves(progress: RunProgress, width: int) -> Grid:
    """Return a bar of the rounds and, by round, the mean loss and scores."""
    table = Grid(box=None, pad_edge=False, show_header=False)
    columns = min(60, max(10, width - 40))
    bar = ProgressBar(total=progress.planned, completed=progress.current, width=columns)
    table.add_row("round", f"{progress.current}/{progress.planned}", bar)
    rows = [("train loss", "train_loss", 1.0, "")]
    for metric in progress.metrics:
        unit = " %" if metric.percent else ""
        rows += [(metric.label(part), metric.field(part), metric.scale, unit) for part in metric.parts]
    for label, field, scale, unit in rows:
        values = progress.curve(field)
        last = _last(values)
        shown = "-" if last is None else f"{scale * last:.4g}{unit}"
        table.add_row(label, shown, sparkline(values, columns))
    return table


def _clusters(progress: RunProgress) -> Text:
    found = progress.clusters()
    if len(found) < 2 or len(found) == len(progress.clients):
        return Text(counted(len(found), "cluster"))
    shown = "; ".join(f"{len(names)}: {', '.join(names)}" for names in found)
    return Text(visible(f"{len(found)} clusters: {shown}"), no_wrap=True, overflow="ellipsis")


def _clients(progress: RunProgress, width: int) -> OnTerminal:
    """Return a line for each client."""
    blocks = max(8, min(24, width - max(map(len, progress.clients)) - _NUMBERS_WIDTH))
    own = [metric for metric in progress.metrics if metric.scope == "client"]
    losses, group = progress.history("train_loss"), progress.history("group")
    traced, of = (progress.history(own[0].field()), own[0].label()) if own else (losses, "train loss")
    scores = [(metric, part) for metric in own for part in metric.parts]
    headings = [metric.label(part, unit=True) for metric, part in scores]
    histories = [(metric, progress.history(metric.field(part))) for metric, part in scores]
    spare = ("cluster", *(each for each in headings if each.startswith("val")), "train loss")
    groups = list(dict.fromkeys(group[-1].tolist()))
    rows = [
        (
            name,
            sparkline(traced[:, place], blocks),
            groups.index(group[-1, place]) + 1,
            number(_last(losses[:, place]), 4),
            *(score(metric, _last(history[:, place])) for metric, history in histories),
        )
        for place, name in enumerate(progress.clients)
    ]
    headed = ("client", f"{of} by round", "cluster", "train loss", *headings)
    return OnTerminal(Table(listed(headed, spare), rows))


def _last(values: np.ndarray) -> float | None:
    present = values[~np.isnan(values)]
    return float(present[-1]) if len(present) else None


def sparkline(values: Sequence[float] | np.ndarray, width: int) -> str:
    """Return values as at most `width` blocks, each as high as the mean of its share; NaN is a blank."""
    given = np.asarray(values, np.float64)
    pieces = np.array_split(given, min(width, len(given))) if len(given) else []
    means = np.array([np.nanmean(piece) if np.isfinite(piece).any() else math.nan for piece in pieces])
    present = means[np.isfinite(means)]
    if not len(present):
        return ""
    shares = (means - present.min()) / (np.ptp(present) or 1.0)
    places = np.round((len(_BLOCKS) - 1) * shares)
    return "".join(_BLOCKS[int(place)] if math.isfinite(place) else " " for place in places)
