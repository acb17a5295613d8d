"""``fedmpi leaderboard``: tune and run a track's methods, check its rows, write the page."""

from __future__ import annotations

import math
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from fedmpi import NUMERICS_VERSION
from fedmpi.analysis.leaderboard import row_files
from fedmpi.analysis.leaderboard import rows as board_rows
from fedmpi.analysis.leaderboard import track as tracks
from fedmpi.analysis.leaderboard.from_runs import rows_of
from fedmpi.analysis.leaderboard.rows import FINAL, REFERENCE, TUNING, Constant, Row
from fedmpi.analysis.leaderboard.track import SEEDS, Pair, Settings, Track
from fedmpi.case.folders import holds_run
from fedmpi.cli.options import Anew, Budget, Data, Plugin, SweepOptions
from fedmpi.cli.plan import Planned, plan_suite
from fedmpi.cli.sweep import run_missing
from fedmpi.cli.terminal import counted, refuse_no_file, say, write
from fedmpi.config import locations
from fedmpi.config.suite import Suite, read
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput, Diverged, Interrupted
from fedmpi.registry.check import check_suite
from fedmpi.store.lock import in_turn
from fedmpi.store.reader import Run, load_run

TRACKS = tracks.bundled()
ROWS = Path("results/reference/leaderboard")
"""Folder of the committed rows, a file per track."""

TrackName = Annotated[str, typer.Argument(help=f"{', '.join(TRACKS)}, or the suite of a track's tuning.")]
Rows = Annotated[
    Path | None, typer.Option(help="File of the rows; default results/reference/leaderboard/TRACK.csv.")
]


def run(track: TrackName, options: SweepOptions, rows: Rows = None, budget: Budget = None) -> int:
    """Tune the methods of a track, run the winners with ten seeds, and add their rows; resumable.

    The best candidate by validation wins. The suite of the winners is written beside that of the tuning. With
    --set, for instance algorithm=fedavg, only some methods or federations; what others have stays. Cases
    whose rows are stored are not run again, with or without their records.

    Returns
    -------
    int
        0 all done, 1 a case failed, 75 cases are left (budget or signal). A case that diverges has lost.

    Examples
    --------
    fedmpi leaderboard run graphs --workers 2

    fedmpi leaderboard run nodes --set algorithm=fedgta
    """
    path = suite_of(track)
    whole = tracks.track(path)
    target = rows or ROWS / f"{whole.name}.csv"
    earlier = _refuse_places(whole, target)
    some = tracks.track(path, options.overrides)
    _refuse_strangers(whole, some)
    there = {row.data for row in earlier if row.method == REFERENCE and row.stage == FINAL}
    there |= {data for data, method in some.candidates if method == REFERENCE}
    if lacking := [data for data in some.federations if data not in there]:
        say(f"Without a target on {', '.join(lacking)}: {REFERENCE} is neither chosen nor stored there")
    place = _below(options, TUNING)
    tuning = plan_suite(some.suite, place.out, resume=True, ranks=options.ranks)
    code, known = _run_stage(some, tuning, TUNING, target, path, place, budget)
    if code not in (0, Diverged.exit_code):
        return code
    _add_winners(whole, board_rows.chosen(some, known))
    place = replace(_below(options, FINAL), set_=None)  # the plan says what is run
    final = _chosen(read(some.tuned_file), some.final_cases, place)
    code = max(code, _run_stage(some, final, FINAL, target, whole.tuned_file, place, budget)[0])
    _add_constants(whole, some.federations, target, options.source())
    return 0 if code == Diverged.exit_code else code


def _run_stage(
    some: Track,
    plan: Sequence[Planned],
    stage: str,
    target: Path,
    path: Path,
    place: SweepOptions,
    budget: float | None,
) -> tuple[int, list[Row]]:
    """Run the cases of a stage that have no row, and store their rows.

    Returns
    -------
    int
        The exit code of the sweep.
    list of Row
        Of the plan's cases, as far as they are there.
    """
    digests = {item.checked.case.name: item.checked.case.digest() for item in plan}

    def of_plan(listed: Sequence[Row]) -> list[Row]:
        own = [row for row in listed if row.stage == stage and row.numerics_version == NUMERICS_VERSION]
        return [row for row in own if digests.get(row.case) == row.config_digest]

    stored = {row.case for row in of_plan(_earlier(some, target))}
    left = [item for item in plan if item.checked.case.name not in stored]
    if stored:
        say(f"{counted(len(stored), 'case')} of {len(plan)} have rows in {target}")
    code = run_missing(left, path, place, budget=budget) if left else 0
    return code, of_plan(_add_rows(some, target, stage, _ended(left)))


def _refuse_places(whole: Track, target: Path) -> list[Row]:
    """Refuse, before hours of tuning, what could not be stored after it; return the rows that are stored."""
    own = whole.name in TRACKS and suite_of(whole.name).samefile(whole.suite.path)
    if not own and (whole.bundled or whole.name in TRACKS):
        raise BadInput(
            f"{whole.suite.path}: its name is {whole.suite.name}, fedmpi's own track; choose another"
        )
    refuse_no_file(whole.tuned_file)
    refuse_no_file(target, "--rows ")
    tracks.stored(whole)
    return _earlier(whole, target)


def _refuse_strangers(whole: Track, some: Track) -> None:
    """Refuse --set that does more than choose among a track's pairs."""
    for (data, method), cases in some.candidates.items():
        if method not in whole.methods:
            raise BadInput(
                f"--set algorithm={method}: {whole.suite.path} has no such method (valid: "
                f"{', '.join(whole.methods)}); one of a plug-in needs a track of its own"
            )
        if [case.name for case in cases] != [case.name for case in whole.candidates.get((data, method), ())]:
            raise BadInput(
                f"--set: it chooses federations (data) and methods (algorithm) of {whole.suite.path}, "
                "nothing else"
            )


def _earlier(some: Track, target: Path) -> list[Row]:
    """Return the rows that are stored."""
    listed = row_files.read(target) if target.exists() else []
    row_files.refuse_other_tracks(target, listed, some.name)
    return listed


def _add_winners(whole: Track, new: Mapping[Pair, Settings]) -> None:
    """Put winners into the suite of the winners, in the place of earlier ones of the same pairs."""
    with in_turn(whole.tuned_file.parent):
        winners = tracks.merged(whole, tracks.stored(whole), new)
        if not winners:
            raise BadInput(
                f"{whole.suite.path}: every candidate has diverged, so nothing can be run: lower the rates"
            )
        write(whole.tuned_file, tracks.tuned_suite(whole, winners))
    say(f"wrote {whole.tuned_file}: {len(winners)} winners")


def suite_of(track: str) -> Path:
    """Return the suite of a track's tuning."""
    return locations.find(f"leaderboard/{track}" if track in TRACKS else track)


def _below(options: SweepOptions, stage: str) -> SweepOptions:
    """Return the options for a stage, whose cases are in a folder of their own below --out."""
    return options if options.out is None else replace(options, out=options.out / stage)


def _chosen(suite: Suite, names: Container[str], options: SweepOptions) -> list[Planned]:
    """Return the plan of a suite's cases of these names."""
    plan = plan_suite(suite, options.out, resume=True, ranks=options.ranks)
    return [item for item in plan if item.checked.case.name in names]


def _ended(plan: Sequence[Planned]) -> list[Run]:
    """Return the runs of a plan that are there, in its order."""
    return [load_run(item.folder) for item in plan if holds_run(item.folder)]


def _add_rows(some: Track, target: Path, stage: str, runs: Sequence[Run]) -> list[Row]:
    """Put the rows of a stage's runs into a file, in the place of earlier ones of these cases; return all."""
    with in_turn(target.parent):
        earlier = _earlier(some, target)
        new = rows_of(some, runs, stage, earlier)
        listed = board_rows.merged(earlier, new)
        write(target, row_files.as_csv(Row, listed))
    say(f"wrote {target}: {len(new)} rows of this run; {_page_command(some, target)} shows them")
    if lacking := sorted({row.data for row in new if row.scored and math.isnan(row.target)}):
        say(f"Without a target on {', '.join(lacking)}: run {REFERENCE} there, then these methods again")
    return listed


def _page_command(some: Track, target: Path) -> str:
    """Return the command that shows a track."""
    words = ["fedmpi", "leaderboard", "page"]
    if target != ROWS / f"{some.name}.csv":
        words.append(str(target))
    if not some.bundled:
        words += ["--track", str(some.suite.path), "--document", f"{some.name}.md"]
    return shlex.join(words)


def constants(track: TrackName, options: Data, rows: Rows = None, plugin: Plugin = None) -> int:
    """Write what a constant prediction scores on a track's federations: each client's majority class.

    Nothing is trained; `run` does it, too. The file is TRACK.csv in a folder constants beside the rows.

    Examples
    --------
    fedmpi leaderboard constants graphs

    fedmpi leaderboard constants mine.toml
    """
    found = tracks.track(suite_of(track))
    _add_constants(found, found.federations, rows or ROWS / f"{found.name}.csv", options.source())
    return 0


def _add_constants(whole: Track, federations: Sequence[str], target: Path, source: DataSource) -> None:
    """Put the constants of some federations into the file beside the rows, in the place of earlier ones."""
    path, new = row_files.constants_beside(target), _constants(whole, federations, SEEDS, source)
    with in_turn(path.parent):
        kept = [each for each in row_files.read_constants(path) if (each.data, each.seed) not in new]
        listed = [each for each in (*kept, *chain(*new.values())) if each.data in whole.federations]
        listed.sort(key=lambda each: (whole.federations.index(each.data), each.seed, each.metric))
        write(path, row_files.as_csv(Constant, listed))
    say(f"wrote {path}: {len(new)} federations with a seed")


def _constants(
    whole: Track, federations: Container[str], seeds: Container[int], source: DataSource
) -> dict[tuple[str, int], list[Constant]]:
    """Return the constants of some federations with some seeds, of those that have winners."""
    from fedmpi.client.constant import constants as computed

    found: dict[tuple[str, int], list[Constant]] = {}
    for checked in check_suite(read(whole.tuned_file)):
        case, (data, _) = checked.case, whole.final_cases.get(checked.case.name, ("", ""))
        place = data, case.seed
        if data in federations and case.seed in seeds and place not in found and not checked.algorithm.pools:
            source.prepare(case.dataset.name)
            scores = computed(case, source).means().items()
            found[place] = [Constant(whole.name, *place, *score) for score in scores]
    return found


def check(
    track: TrackName,
    options: Anew,
    rows: Rows = None,
    every: Annotated[int, typer.Option(min=1)] = 10,
    first: Annotated[int, typer.Option(min=0)] = 0,
) -> int:
    """Compute a part of a track's rows again, from nothing, and compare them bit for bit.

    Parameters
    ----------
    every
        Which rows: one in so many, 1 for all.
    first
        Number of the first of them, from 0.

    Returns
    -------
    int
        0 if they are the same, 1 if not or if a case failed, 75 after a signal.

    Examples
    --------
    fedmpi leaderboard check graphs --every 10 --workers 2
    """
    found = tracks.track(suite_of(track))
    path = rows or ROWS / f"{found.name}.csv"
    listed = row_files.read(path)
    row_files.refuse_other_tracks(path, listed, found.name)
    committed = listed[first::every]
    if not committed:
        raise BadInput(f"{path}: it has {len(listed)} rows, so there are none from --first {first} on")
    with TemporaryDirectory(prefix="fedmpi-check-") as folder:
        code, computed = _computed(found, committed, options.sweep_in(options.out or Path(folder)))
    if code == Interrupted.exit_code:
        kept = f"; the same command goes on in {options.out}" if options.out else "; --out would keep them"
        say(f"{len(computed)} of {counted(len(committed), 'case')} computed again, none compared{kept}")
        return code
    places = {(row.data, row.seed) for row in committed if row.stage == FINAL}
    stored = [
        each
        for each in row_files.read_constants(row_files.constants_beside(path))
        if (each.data, each.seed) in places
    ]
    federations, seeds = {data for data, _ in places}, {seed for _, seed in places}
    again = _constants(found, federations, seeds, options.source()) if stored else {}
    missing = sorted(set(stored) - set(chain(*again.values())), key=attrgetter("data", "seed"))
    constants = [
        f"constant prediction on {each.data}, seed {each.seed}: stored is {each.constant}" for each in missing
    ]
    code = _compared(
        counted(len(committed), "case"), board_rows.differences(committed, computed), "the same bits"
    )
    if stored:
        code = max(code, _compared(counted(len(stored), "constant prediction"), constants, "the same"))
    return code


def _compared(what: str, differences: Sequence[str], same: str) -> int:
    """Print what differs; return the exit code."""
    for line in differences:
        say(f"DIFFERS: {line}")
    say(f"{what} computed again: {f'{len(differences)} differ' if differences else same}")
    return 1 if differences else 0


def _computed(found: Track, committed: Sequence[Row], options: SweepOptions) -> tuple[int, list[Row]]:
    """Return the exit code of the sweeps, and the rows of these cases, computed anew below --out.

    The folders have other names than a run's, so that nobody compares runs with their own rows.
    """
    computed: list[Row] = []
    for stage, path in ((TUNING, found.suite.path), (FINAL, found.tuned_file)):
        names = {row.case for row in committed if row.stage == stage}
        if names:
            place = _below(options, f"check-{stage}")
            plan = _chosen(read(path), names, place)
            code = run_missing(plan, path, place)
            computed += rows_of(found, _ended(plan), stage)
            if code == Interrupted.exit_code:
                return code, computed
    return 0, computed
