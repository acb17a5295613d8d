"""``fedmpi leaderboard screen``: which federations tell methods apart."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedmpi import NUMERICS_VERSION
from fedmpi.analysis.leaderboard import row_files, screening
from fedmpi.analysis.leaderboard import track as tracks
from fedmpi.analysis.leaderboard.screening import Screened, Trial, screened, trials
from fedmpi.analysis.leaderboard.track import Track
from fedmpi.case.folders import holds_run
from fedmpi.cli.leaderboard import ROWS
from fedmpi.cli.options import Budget, SweepOptions
from fedmpi.cli.plan import plan_suite
from fedmpi.cli.sweep import run_missing
from fedmpi.cli.terminal import counted, refuse_no_file, say, show, write
from fedmpi.config import locations
from fedmpi.errors import BadInput, Diverged
from fedmpi.registry.check import check_suite
from fedmpi.store.lock import in_turn
from fedmpi.store.reader import load_run
from fedmpi.tables.table import Column, Table

SCREENINGS = ("graphs", "nodes", "molecules", "links")

Screening = Annotated[str, typer.Argument(help="graphs, nodes, molecules, links, or a suite of one's own.")]


def screen(track: Screening, options: SweepOptions, rows: Path | None = None, budget: Budget = None) -> int:
    """Run reference methods on many federations and say which can tell methods apart; resumable from rows.

    A federation is kept where self-train or FedAvg is 5 points above a constant prediction, training alone
    and together differ by 5 points, 2 points between two methods would be significant with ten seeds (at
    Holm's first step for 30 methods), test parts have 200 examples, and FedAvg takes at most 20 CPU seconds.

    Parameters
    ----------
    rows
        File of the rows; default results/reference/leaderboard/screening/TRACK.csv.

    Returns
    -------
    int
        0 all done, 1 a case failed, 75 cases are left (budget or signal).

    Examples
    --------
    fedmpi leaderboard screen graphs --workers 2
    """
    path = locations.find(f"leaderboard/screening-{track}" if track in SCREENINGS else track)
    whole, some = tracks.track(path), tracks.track(path, options.overrides)
    screening.refuse_others(whole)
    _refuse_other_settings(whole, some)
    target = rows or ROWS / "screening" / f"{whole.name.removeprefix('screening-')}.csv"
    refuse_no_file(target, "--rows ")
    _refuse_foreign(target, whole)
    own = {item.case.digest() for item in check_suite(whole.suite)}
    known = {each.config_digest for each in _stored(target, own)}
    whole_plan = plan_suite(some.suite, options.out, resume=True, ranks=options.ranks)
    plan = [each for each in whole_plan if each.checked.case.digest() not in known]
    code = run_missing(plan, path, options, budget=budget) if plan else 0
    new = trials(some, (load_run(item.folder) for item in plan if holds_run(item.folder)))
    with in_turn(target.parent):
        listed = _merged(_stored(target, own), new, whole.federations)
        found = screened(listed)
        write(target, row_files.as_csv(Trial, listed))
    show(_table(found))
    say(f"wrote {target}: {counted(len(listed), 'run')}")
    return 0 if code == Diverged.exit_code else code


def _refuse_other_settings(whole: Track, some: Track) -> None:
    """Refuse --set that does more than choose among a screening's cases, and cases that share a row."""
    cases = {case.name: case.settings for case in whole.suite.cases}
    for case in some.suite.cases:
        if cases.get(case.name) != case.settings:
            raise BadInput(f"--set: it chooses among the cases of {whole.suite.path}, nothing else")
    for pair, listed in whole.candidates.items():
        if len({case.settings.get("seed", 0) for case in listed}) < len(listed):
            raise BadInput(
                f"{whole.suite.path}: {' '.join(pair)}: two cases of one seed; a screening has one of each"
            )


def _refuse_foreign(target: Path, whole: Track) -> None:
    """Refuse a file with rows of another screening, which would be lost."""
    found = row_files.read_trials(target) if target.exists() else []
    if other := sorted({each.data for each in found} - {*whole.federations}):
        raise BadInput(f"{target}: rows of {other[0]}, not of {whole.suite.path}; choose another --rows")


def _stored(target: Path, own: Container[str]) -> list[Trial]:
    """Return the rows of a file whose cases are as the suite has them now."""
    found = row_files.read_trials(target) if target.exists() else []
    return [each for each in found if each.config_digest in own and each.numerics_version == NUMERICS_VERSION]


def _merged(earlier: Sequence[Trial], new: Sequence[Trial], federations: Sequence[str]) -> list[Trial]:
    """Return the trials, new ones in the place of earlier ones, in the order of the suite."""
    found = {(each.data, each.method, each.seed): each for each in (*earlier, *new)}
    return sorted(found.values(), key=lambda each: (federations.index(each.data), each.method, each.seed))


def _table(listed: Sequence[Screened]) -> Table[Screened]:
    def score(name: str) -> Column[Screened]:
        return Column(name, lambda each: each.scores.get(name), format=".1f")

    columns: list[Column[Screened]] = [
        Column("federation", lambda each: each.data),
        *map(score, ("constant", *screening.REFERENCES)),
        Column("significant", lambda each: each.detectable, "points between two methods", format=".1f"),
        Column("test examples", lambda each: each.examples, format=","),
        Column("CPU s", lambda each: each.seconds, "of a run of FedAvg", format=".1f"),
        Column("seeds", lambda each: each.seeds),
        Column("verdict", lambda each: ", ".join(each.lacks) or "kept"),
    ]
    return Table(columns, listed)
