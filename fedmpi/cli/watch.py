"""``fedmpi watch``: a running job, live, from its event log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
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
from fedmpi.cli.round_line import round_line
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
_LEAST_CLIENTS = 3
"""Lines of clients that even a low terminal has."""
_LONGEST_S = 1e9
"""A run that would take 30 years has no end that is worth a date."""
_NUMBERS_WIDTH = 52
"""Columns that the numbers of a client take."""


class Watch:
    """What is watched: a run, or of a folder of runs the one whose log was written last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next_look = 0.0
        self.single = run_paths(path) == [folder_of(path)]
        self.folder = Path()
        self.others = 0
        self._switch()
        if self.single and not (self.folder / events.NAME).exists() and lock.state(self.folder) != "live":
            raise BadInput(
                f"{self.folder}: it has no event log ({events.NAME}) to watch; fedmpi report shows its record"
            )

    def _switch(self) -> None:
        """Go on to the run that was written to last, if that is another one."""
        self._next_look = time.monotonic() + _LOOK_FOR_OTHERS_S
        folders = [_folder(path) for path in run_paths(self._path)]
        newest = max(folders, key=_last_change)
        self.others = len(folders) - 1
        if newest != self.folder:
            self.folder, self.progress, self._tail = newest, RunProgress(), Tail(newest / events.NAME)

    def look(self) -> list[Round]:
        """Return the rounds that were finished since the last look."""
        if not self.single and time.monotonic() > self._next_look:
            self._switch()
        return self.progress.apply(self._tail.poll())

    @property
    def status(self) -> str:
        """The run's status; "stale" where the log says running and no live process holds the folder."""
        if self.progress.status == "running" and lock.state(self.folder) != "live":
            return "stale"
        return self.progress.status


def _folder(path: Path) -> Path:
    return path.parent if path.is_file() else path


def _last_change(folder: Path) -> float:
    try:
        return (folder / events.NAME).stat().st_mtime
    except OSError:
        return 0.0


def watch(
    run: Annotated[Path, typer.Argument(help="A run folder, or a folder of runs: the one written to last.")],
    interval: Annotated[float, typer.Option(help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show how far it is, and stop.")] = False,
) -> int:
    """Watch a running job: rounds, accuracies, clusters, rate and estimated end.

    Returns
    -------
    int
        0; of a single run that ended: 1 if it failed, 3 if it diverged.

    Examples
    --------
    fedmpi watch results/runs/gcfl/proteins/fedavg
    """
    if interval <= 0:
        raise BadInput(f"--interval {interval:g}: give a number of seconds above 0")
    watched = Watch(run)
    screen = console(sys.stdout)
    try:
        if once:
            watched.look()
            screen.print(_view(watched, screen, math.inf))
            return 0
        return _live(watched, screen, interval) if screen.is_terminal else _lines(watched, screen, interval)
    except Stopped:
        return 0


def _ended(watched: Watch) -> int | None:
    return _CODES.get(watched.status) if watched.single else None


def _live(watched: Watch, screen: Console, interval: float) -> int:
    with Live(console=screen, auto_refresh=False, screen=False, vertical_overflow="crop") as live:
        while True:
            watched.look()
            live.update(_view(watched, screen, screen.height), refresh=True)
            if (code := _ended(watched)) is not None:
                return code
            time.sleep(interval)


def _lines(watched: Watch, screen: Console, interval: float) -> int:
    """Print a line per round and per change of status, for a log."""
    status, folder = "", Path()
    while True:
        rounds = watched.look()
        if watched.folder != folder and watched.progress.start is not None:
            folder = watched.folder
            screen.print(watched.progress.title, soft_wrap=True)
        for each in rounds:
            screen.print(_round_line(watched.progress, each), soft_wrap=True)
        if watched.status != status:
            status = watched.status
            screen.print(_status_line(watched), soft_wrap=True)
        screen.file.flush()
        if (code := _ended(watched)) is not None:
            return code
        time.sleep(interval)


def _round_line(progress: RunProgress, each: Round) -> str:
    groups = len(np.unique(each.results["group"]))
    return round_line(progress.metrics, each, progress.planned, f"{counted(groups, 'group')}  ")[0]


def _status_line(watched: Watch) -> str:
    progress = watched.progress
    reason = f": {progress.reason}" if progress.reason else ""
    if watched.status == "stale":
        reason = ": no live process holds the folder; resume it, this goes on then"
    if watched.status == "interrupted":
        reason += "; this goes on when it is resumed"
    return f"{watched.status}{reason}"


def _view(watched: Watch, screen: Console, height: float) -> RenderableType:
    """Return everything on one screen of `height` lines."""
    progress = watched.progress
    if progress.start is None:
        return plain(f"{watched.folder}: nothing in its event log yet")
    more = f"   (newest of {watched.others + 1} runs)" if watched.others else ""
    parts: list[RenderableType] = [
        plain(progress.title + more, "bold"),
        _state(watched),
        _pace(watched),
    ]
    bar = Grid.grid()
    bar.add_row(ProgressBar(total=progress.planned, completed=progress.current, width=min(60, screen.width)))
    parts.append(bar)
    if progress.current:
        parts += [_curves(progress, screen.width), _clusters(progress)]
        if is_together(progress.config):
            parts.append(plain(TOGETHER))
        else:
            parts.append(_clients_that_fit(progress, parts, screen, height))
    return Group(*parts)


def _state(watched: Watch) -> Text:
    progress = watched.progress
    ranks = f" on {counted(progress.ranks, 'rank')}" if progress.ranks else ""
    attempts = f", start {progress.attempts}" if progress.attempts > 1 else ""
    size = f"{counted(len(progress.clients), 'client')}{ranks}{attempts}"
    last = datetime.fromisoformat(progress.last_time).astimezone()
    text = f"{_status_line(watched)}; {size}; last event {last:%Y-%m-%d %H:%M:%S}"
    return plain(text, _STYLES.get(watched.status, "red"))


def _pace(watched: Watch) -> Text:
    progress = watched.progress
    pace = progress.seconds_per_round
    text = f"round {progress.current} of {progress.planned}; {_duration(progress.seconds)} so far"
    if math.isfinite(pace) and pace > 0:
        text += f"; {1 / pace:.3g} rounds/s"
        known = 0 <= progress.seconds_left < _LONGEST_S
        if known and progress.status == "running" and progress.current < progress.planned:
            text += f"; {_duration(progress.seconds_left)} left, end {_end(progress.seconds_left)}"
    if not watched.single and progress.status in _CODES:
        text += "; waiting for another run"
    return Text(text)


def _end(seconds: float) -> str:
    """Return when so many seconds have passed, with the day where that is not today."""
    now = datetime.now()
    end = now + timedelta(seconds=seconds)
    return f"{end:%H:%M}" if end.date() == now.date() else f"{end:%a %H:%M}"


def _duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d} min"


def _curves(progress: RunProgress, width: int) -> Grid:
    table = Grid(box=None, pad_edge=False, show_header=False)
    columns = min(60, max(10, width - 40))
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
    shown = "; ".join(
        f"{len(names)}: {', '.join(names[:4])}{', ...' * (len(names) > 4)}" for names in found[:6]
    )
    text = visible(f"{len(found)} clusters: {shown}{' ...' * (len(found) > 6)}")
    return Text(text, no_wrap=True, overflow="ellipsis")


def _clients_that_fit(
    progress: RunProgress, parts: Sequence[RenderableType], screen: Console, height: float
) -> OnTerminal:
    """Return as many clients as fit below the other parts of the screen."""
    least = _clients(progress, _LEAST_CLIENTS, screen.width)
    free = height - len(screen.render_lines(Group(*parts, least)))
    count = len(progress.clients)
    shown = min(count, _LEAST_CLIENTS)
    if count - shown <= free + 1:  # without the line that counts the others
        return _clients(progress, count, screen.width)
    return _clients(progress, shown + max(0, int(free)), screen.width)


def _clients(progress: RunProgress, count: int, width: int) -> OnTerminal:
    """Return a line for each of the first `count` clients."""
    blocks = max(8, min(24, width - max(map(len, progress.clients)) - _NUMBERS_WIDTH))
    own = [metric for metric in progress.metrics if metric.scope == "client"]
    losses, group = progress.history("train_loss"), progress.history("group")
    traced, of = (progress.history(own[0].field()), own[0].label()) if own else (losses, "train loss")
    scores = [(metric, part) for metric in own for part in metric.parts]
    headings = [metric.label(part, unit=True) for metric, part in scores]
    histories = [progress.history(metric.field(part)) for metric, part in scores]
    spare = ("cluster", *(each for each in headings if each.startswith("val")), "train loss")
    groups = list(dict.fromkeys(group[-1].tolist()))
    rows = [
        (
            name,
            sparkline(traced[:, place], blocks),
            groups.index(group[-1, place]) + 1,
            number(_last(losses[:, place]), 4),
            *(
                score(metric, _last(history[:, place]))
                for (metric, _), history in zip(scores, histories, strict=True)
            ),
        )
        for place, name in enumerate(progress.clients[:count])
    ]
    columns = listed(("client", f"{of} by round", "cluster", "train loss", *headings), spare)
    more = len(progress.clients) - len(rows)
    notes = [f"and {counted(more, 'more client')}"] if more else []
    return OnTerminal(Table(columns, rows, notes=notes))


def _last(values: np.ndarray) -> float | None:
    present = values[~np.isnan(values)]
    return float(present[-1]) if len(present) else None


def sparkline(values: Sequence[float] | np.ndarray, width: int) -> str:
    """Return values as at most `width` blocks, each as high as the mean of its share; NaN is a blank."""
    given = np.asarray(values, np.float64)
    pieces = np.array_split(given, min(width, len(given))) if len(given) else []
    means = [float(np.nanmean(piece)) if np.isfinite(piece).any() else math.nan for piece in pieces]
    present = [value for value in means if math.isfinite(value)]
    if not present:
        return ""
    low, last = min(present), len(_BLOCKS) - 1
    span = max(present) - low or 1.0
    heights = (round(last * (value - low) / span) if math.isfinite(value) else None for value in means)
    return "".join(" " if height is None else _BLOCKS[height] for height in heights)
