"""``fedmpi leaderboard``: tune and run a track's methods, check its rows, write the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from fedmpi.analysis.leaderboard import rows as files
from fedmpi.analysis.leaderboard import track as tracks
from fedmpi.analysis.leaderboard.board import board
from fedmpi.analysis.leaderboard.page import pages
from fedmpi.analysis.leaderboard.rows import FINAL, TUNING, Row
from fedmpi.analysis.leaderboard.track import Pair, Track
from fedmpi.case.folders import holds_run
from fedmpi.cli.options import Budget, SweepOptions
from fedmpi.cli.plan import Planned, plan_suite
from fedmpi.cli.sweep import run_missing
from fedmpi.cli.terminal import say, write
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput, Diverged
from fedmpi.registry.kinds import load_plugins
from fedmpi.store.reader import Run, load_run

TRACKS = ("graphs", "nodes")
ROWS = Path("results/reference/leaderboard")
"""Folder of the committed rows, a file per track."""

TrackName = Annotated[str, typer.Argument(help="graphs, nodes, or the suite of a track's tuning.")]
Rows = Annotated[
    Path | None, typer.Option(help="File of the rows; default results/reference/leaderboard/TRACK.csv.")
]


def run(
    track: TrackName,
    options: SweepOptions,
    rows: Rows = None,
    budget: Budget = None,
) -> int:
    """Tune the methods of a track, run the winners with ten seeds, and add their rows; resumable.

    The best candidate by validation wins. The suite of the winners is written beside that of the tuning. With
    --set, for instance algorithm=fedavg, only some methods or federations; what others have stays.

    Returns
    -------
    int
        0 all done, 1 a case failed, 75 cases are left (budget or signal). A case that diverges has lost.

    Examples
    --------
    fedmpi leaderboard run graphs --workers 2

    fedmpi leaderboard run nodes --set algorithm=fedgta
    """
    load_plugins(options.plugins)
    path = _suite(track)
    whole = tracks.track(path)
    target = rows or ROWS / f"{whole.name}.csv"
    some = tracks.track(path, options.overrides)
    if any(_names(some, pair) != _names(whole, pair) for pair in some.candidates):
        raise BadInput(
            f"--set: it chooses federations (data) and methods (algorithm) of {path}, nothing else"
        )
    tuning = plan_suite(some.suite, _below(options.out, TUNING), resume=True, ranks=options.ranks)
    code = run_missing(tuning, path, _at(options, TUNING), budget=budget)
    if code not in (0, Diverged.exit_code):
        return code
    found = _ended(tuning)
    winners = tracks.merged(whole, tracks.stored(whole.tuned_file), tracks.chosen(some, found))
    if not winners:
        raise BadInput(f"{path}: every candidate has diverged, so nothing can be run: lower the rates")
    write(whole.tuned_file, tracks.tuned_suite(whole, winners))
    say(f"wrote {whole.tuned_file}: {len(winners)} winners")
    final = _final(some, _below(options.out, FINAL), options.ranks)
    code = max(code, run_missing(final, whole.tuned_file, _without_set(_at(options, FINAL)), budget=budget))
    _add_rows(some, target, {TUNING: found, FINAL: _ended(final)})
    return 0 if code == Diverged.exit_code else code


def _names(found: Track, pair: Pair) -> list[str]:
    """Return the names of a pair's candidates."""
    return [case.name for case in found.candidates.get(pair, ())]


def _suite(track: str) -> Path:
    """Return the suite of a track's tuning."""
    return locations.find(f"leaderboard/{track}" if track in TRACKS else track)


def _below(out: Path | None, stage: str) -> Path | None:
    return None if out is None else out / stage


def _at(options: SweepOptions, stage: str) -> SweepOptions:
    """Return the options for a stage, whose cases are in a folder of their own below --out."""
    return replace(options, out=_below(options.out, stage))


def _without_set(options: SweepOptions) -> SweepOptions:
    """Return the options for the suite of the winners, of which the plan says what is run."""
    return replace(options, set_=None)


def _final(some: Track, out: Path | None, ranks: int) -> list[Planned]:
    """Return the plan of the winners of some pairs."""
    plan = plan_suite(read(some.tuned_file), out, resume=True, ranks=ranks)
    names = {f"{label}-seed{seed}" for label in some.pairs for seed in tracks.SEEDS}
    return [item for item in plan if item.checked.case.name in names]


def _ended(plan: Sequence[Planned]) -> list[Run]:
    """Return the runs of a plan that are there, in its order."""
    return [load_run(item.folder) for item in plan if holds_run(item.folder)]


def _add_rows(some: Track, target: Path, found: dict[str, list[Run]]) -> None:
    """Put the rows of runs into a file, in the place of earlier ones of the same cases."""
    earlier = files.read(target) if target.is_file() else []
    new: list[Row] = []
    for stage, runs in found.items():
        new += files.rows_of(some, runs, stage, earlier)
    write(target, files.as_csv(files.merged(earlier, new)))
    say(f"wrote {target}: {len(new)} rows of this run; fedmpi leaderboard page shows them")


def check(
    track: TrackName,
    options: SweepOptions,
    rows: Rows = None,
    every: Annotated[int, typer.Option(min=1, help="Which rows: one in so many, 1 for all.")] = 10,
    first: Annotated[int, typer.Option(min=0, help="Number of the first of them, from 0.")] = 0,
) -> int:
    """Compute a part of a track's rows again, from nothing, and compare them bit for bit.

    Returns
    -------
    int
        0 if they are the same, 1 if not or if a case failed.

    Examples
    --------
    fedmpi leaderboard check graphs --every 10 --workers 2
    """
    load_plugins(options.plugins)
    if options.set_:
        raise BadInput("--set: a check computes rows as they are; choose some with --every and --first")
    found = tracks.track(_suite(track))
    committed = files.read(rows or ROWS / f"{found.name}.csv")[first::every]
    if not committed:
        raise BadInput(f"--first {first}: there are no rows from there on")
    with TemporaryDirectory(prefix="fedmpi-check-") as folder:
        place = options.out or Path(folder)
        computed = _computed(found, committed, replace(options, out=place))
    return _compare(committed, computed)


def _computed(found: Track, committed: Sequence[Row], options: SweepOptions) -> list[Row]:
    """Return the rows of these cases, computed anew below --out."""
    computed: list[Row] = []
    for stage, path in ((TUNING, found.suite.path), (FINAL, found.tuned_file)):
        names = {row.case for row in committed if row.stage == stage}
        if names:
            plan = plan_suite(read(path), _below(options.out, stage), resume=True, ranks=options.ranks)
            plan = [item for item in plan if item.checked.case.name in names]
            run_missing(plan, path, _at(options, stage))
            computed += files.rows_of(found, _ended(plan), stage)
    return computed


def _compare(committed: Sequence[Row], computed: Sequence[Row]) -> int:
    """Print what differs; return the exit code."""
    lines = files.differences(committed, computed)
    for line in lines:
        say(f"DIFFERS: {line}")
    cases = f"{len(committed)} case{'s' * (len(committed) != 1)}"
    say(f"{cases} computed again: {f'{len(lines)} differ' if lines else 'the same bits'}")
    return 1 if lines else 0


def page(
    rows: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of rows, of any track; default results/reference/leaderboard/*.csv."),
    ] = None,
    document: Annotated[Path, typer.Option(help="The page; its pictures go into images beside it.")] = Path(
        "docs/leaderboard.md"
    ),
) -> int:
    """Write the page from stored rows: ranks, scores, costs and settings of every track.

    Examples
    --------
    fedmpi leaderboard page
    """
    listed = [row for path in rows or sorted(ROWS.glob("*.csv")) for row in files.read(path)]
    found = [tracks.track(_suite(name)) for name in TRACKS]
    if stray := sorted({row.track for row in listed} - {each.name for each in found}):
        raise BadInput(f"rows of {', '.join(stray)}: no such track (there are {', '.join(TRACKS)})")
    for each in found:
        strange = {row.data for row in listed if row.track == each.name} - set(each.federations)
        if strange:
            raise BadInput(f"rows of {', '.join(sorted(strange))}: {each.suite.name} has no such federation")
    boards = [board(each, [row for row in listed if row.track == each.name]) for each in found]
    for path, text in pages(boards, document.name).items():
        write(document.parent / path, text)
        say(f"wrote {document.parent / path}")
    return 0
