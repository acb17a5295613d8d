"""Runs as pandas frames, for analyses of one's own; see docs/reading-results.md."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.scores import by_task, task_fields, task_names
from fedmpi.analysis.summary import per_client, setting, summarise
from fedmpi.errors import BadInput
from fedmpi.store.reader import AttemptRecord, Run
from fedmpi.store.schema import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_MOST_LISTED = 8
"""Runs that are named where frames are printed."""
_SHOWN = (
    *("dataset", "algorithm", "seed", "status", "rounds", "ranks"),
    *("test_accuracy", "score", "total_seconds"),
)
"""Columns of runs that a notebook shows."""
_IDENTITY = ("run", "dataset", "algorithm", "seed")
Columns = dict[str, Any]


@dataclass(frozen=True)
class Frames:
    """The records of some runs as frames; each is made when it is first asked for.

    Every frame has the columns `run` (the folder, which tells runs apart), `dataset`, `algorithm` and `seed`.
    Rounds count from 1. Names and units of the other columns are those of docs/metrics.md and
    docs/results-format.md: accuracies are shares of 1, times seconds.

    Attributes
    ----------
    read : tuple of Run
        The records themselves.
    left_out : tuple of str
        A line for each path that could not be read.
    """

    read: tuple[Run, ...]
    left_out: tuple[str, ...]

    def __repr__(self) -> str:
        """Return what there is, in at most 20 lines."""
        states = Counter(run.status for run in self.read)
        listed = ", ".join(f"{count} {status}" for status, count in sorted(states.items()))
        lines = [f"Frames of {len(self.read)} run{'s' * (len(self.read) != 1)}: {listed}"]
        lines += [f"  .{name:<12} {what}" for name, what in _contents().items()]
        lines += [f"  {run!r}" for run in self.read[:_MOST_LISTED]]
        if len(self.read) > _MOST_LISTED:
            lines.append(f"  and {len(self.read) - _MOST_LISTED} more, listed in .runs")
        if self.left_out:
            lines.append(f"  {len(self.left_out)} left out, named in .left_out")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the runs, and what else there is."""
        shown = [name for name in _SHOWN if name in self.runs]
        table = self.runs[shown].to_html(max_rows=2 * _MOST_LISTED, index=False, float_format="{:.4f}".format)
        left_out = f"; {len(self.left_out)} left out, named in .left_out" if self.left_out else ""
        return f"{table}<p>Frames: {', '.join('.' + name for name in _contents())}{left_out}</p>"

    def plot(self, kind: str = "losses", **options: Any) -> Figure:
        """Return a figure of matplotlib of the complete runs.

        Parameters
        ----------
        kind : str
            One of docs/figures.md, as `fedmpi plot` takes it.
        options
            Of that kind.

        Raises
        ------
        BadInput
            No such kind or option, no complete run, or matplotlib is not installed.
        """
        from fedmpi.analysis import figures

        drawing = figures.check_options(figures.load(kind), options, f"{kind}: ")
        return figures.picture(drawing, [run for run in self.read if run.status == "complete"])

    @cached_property
    def runs(self) -> DataFrame:
        """A row per run: its figures as `fedmpi report --json` has them, status included."""
        import pandas

        found = pandas.DataFrame([{**summarise(run), **_identity(run)} for run in self.read])
        return found[[*_IDENTITY, *found.columns.drop(["folder", *_IDENTITY])]]

    @cached_property
    def clients(self) -> DataFrame:
        """A row per run and client, at the end: its figures."""
        import pandas

        rows = ((run, row) for run in self.read for row in per_client(run))
        return pandas.DataFrame([{**_identity(run), **row} for run, row in rows])

    @cached_property
    def rounds(self) -> DataFrame:
        """A row per run, round and client: every result, and the client's training seconds.

        What is of all clients together, as ROC-AUC or RMSE, stands in the row of each client.
        """
        return _joined(self.read, _rounds)

    @cached_property
    def tasks(self) -> DataFrame:
        """A row per run, round and label column: `task`, and its scores; no row of runs without any."""
        return _joined(self.read, _tasks)

    @cached_property
    def times(self) -> DataFrame:
        """A row per run and round: attempt, number of ranks, wall-clock and virtual seconds."""
        return _joined(self.read, _times)

    @cached_property
    def ranks(self) -> DataFrame:
        """A row per run, round and rank: seconds in each phase, CPU seconds, executed FLOPs, memory."""
        return _joined(self.read, _ranks)

    @cached_property
    def collectives(self) -> DataFrame:
        """A row per run, round, rank and collective: calls, bytes, seconds."""
        return _joined(self.read, _collectives)


def load(*paths: str | Path) -> Frames:
    """Read runs as pandas frames.

    Parameters
    ----------
    paths : str or Path
        Run folders, folders that hold some, or suites whose cases lie in ``results/runs``.

    Raises
    ------
    BadInput
        pandas is not installed, or nothing could be read; what else could not be is in `Frames.left_out`.
    """
    if importlib.util.find_spec("pandas") is None:
        raise BadInput("frames are those of pandas, which is missing: pip install 'fedmpi[report]'")
    left_out: list[str] = []
    runs = tuple(each_run([Path(path) for path in paths], left_out))
    if not runs:
        raise BadInput("; ".join(left_out) or "load: name at least one run")
    return Frames(runs, tuple(left_out))


def _contents() -> dict[str, str]:
    """Return what a row of each frame is about, by the frame's name."""
    frames = {name: each.__doc__ for name, each in vars(Frames).items() if isinstance(each, cached_property)}
    return {name: f"a{str(text)[1:].partition(':')[0]}" for name, text in frames.items()}


def _identity(run: Run) -> Columns:
    names = {name: str(setting(run.config, name) or "") for name in ("dataset", "algorithm")}
    return {"run": str(run.folder), **names, "seed": run.config.get("seed")}


def _joined(runs: Iterable[Run], columns: Callable[[Run], Columns]) -> DataFrame:
    """Return the frames of all runs below each other; the names are categories, which take a byte a row."""
    import pandas

    joined = pandas.concat(
        [pandas.DataFrame(columns(run)).assign(**_identity(run)) for run in runs], ignore_index=True
    )
    own = joined.columns.drop(list(_IDENTITY))
    return joined[[*_IDENTITY, *own]].astype(dict.fromkeys(_IDENTITY[:3], "category"))


def _rounds(run: Run) -> Columns:
    done, count = run.rounds_completed, len(run.clients)
    columns = _crossed(round=np.arange(1, done + 1), client=np.array(run.clients))
    apart = {"test_correct", *task_fields(run).values()}
    for name, values in run.results.items():
        if values.shape == (done, count) and name not in apart:
            columns[name] = values.ravel()
        elif values.shape == (done,):
            columns[name] = np.repeat(values, count)
    if run.attempts:
        for name in ("client_wall_seconds", "client_cpu_seconds"):
            columns[name] = run.measured(name).ravel()
    return columns


def _tasks(run: Run) -> Columns:
    names = np.array(task_names(run), str)
    columns = _crossed(round=np.arange(1, run.rounds_completed + 1), task=names)
    return columns | {name: values.ravel() for name, values in by_task(run).items()}


def _times(run: Run) -> Columns:
    attempt, ranks = np.zeros((2, run.rounds_completed), np.int64)
    for number, (each, kept) in enumerate(run.kept_rounds()):
        attempt[kept + each.first_round], ranks[kept + each.first_round] = number, each.ranks
    measured: Columns = {"round": np.arange(1, run.rounds_completed + 1), "life": attempt, "ranks": ranks}
    if run.attempts:
        measured |= {name: run.measured(name) for name in ("round_seconds", "virtual_seconds")}
    return measured


_BY_RANK = ("cpu_seconds", "executed_flops", "peak_host_bytes", "peak_device_bytes")
_JOULES = ("host_joules", "device_joules")
"""Of runs with counters of energy."""


def _ranks(run: Run) -> Columns:
    def measured(attempt: AttemptRecord, kept: Array) -> Columns:
        phases = attempt.measurements["phase_seconds"][kept]
        seconds = {f"{name}_seconds": phases[:, :, place] for place, name in enumerate(attempt.phases)}
        names = [name for name in (*_BY_RANK, *_JOULES) if name in attempt.measurements]
        return seconds | {name: attempt.measurements[name][kept] for name in names}

    return _by_attempt(run, measured)


def _collectives(run: Run) -> Columns:
    def measured(attempt: AttemptRecord, kept: Array) -> Columns:
        units = ("calls", "bytes", "seconds")
        return {unit: attempt.measurements[f"collective_{unit}"][kept] for unit in units}

    return _by_attempt(run, measured, lambda attempt: {"collective": np.array(attempt.collectives)})


def _by_attempt(
    run: Run,
    measured: Callable[[AttemptRecord, Array], Columns],
    further: Callable[[AttemptRecord], Columns] = lambda attempt: {},
) -> Columns:
    """Return the kept rounds of attempts: rows by round, rank and a further axis, with what was measured."""
    pieces = []
    for attempt, kept in run.kept_rounds():
        axes = {"round": kept + attempt.first_round + 1, "rank": np.arange(attempt.ranks), **further(attempt)}
        values = {name: each.ravel() for name, each in measured(attempt, kept).items()}
        pieces.append(_crossed(**axes) | values)
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in (pieces or [{}])[0]}


def _crossed(**axes: Array) -> Columns:
    """Return a column for each axis, and a row for every combination of their values."""
    crossed = np.meshgrid(*axes.values(), indexing="ij")
    return {name: values.ravel() for name, values in zip(axes, crossed, strict=True)}
