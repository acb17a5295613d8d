"""The cases of a suite: where each goes, whether it is done, and whether it can begin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedmpi.case.folders import OtherVersion, holds_run, refuse_other_config
from fedmpi.comm import launch
from fedmpi.config import locations, modes
from fedmpi.config.documents import short
from fedmpi.config.suite import Suite
from fedmpi.config.tables import closest
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.registry.check import Checked, check_stored, check_suite
from fedmpi.schedules.recorded import Order
from fedmpi.store import disk
from fedmpi.store.lock import refuse_live
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import stored_config


@dataclass(frozen=True)
class Planned:
    """A checked case, its number in the suite and its folder; `done` when it is complete already.

    `other` names the plug-in's file if the folder's run is of another version of it; `order` is that of a run
    which is computed again.
    """

    number: int
    checked: Checked
    folder: Path
    done: bool
    other: str = ""
    order: Order | None = None


@dataclass(frozen=True)
class Selection:
    """Which cases of a suite are meant; what is wrong with others refuses nothing.

    Attributes
    ----------
    case : str, optional
        Name or number of the only case.
    cases : Path, optional
        File that names cases, one a line, in the order in which they are run.
    share : str, optional
        "T/N": of these the cases T, T + N, T + 2 N, ...
    """

    case: str | None = None
    cases: Path | None = None
    share: str | None = None

    def of(self, suite: Suite, places: Sequence[int]) -> Sequence[int]:
        """Return the places that are meant.

        Raises
        ------
        BadInput
            A case is named that is not there, a file cannot be read, or the share is no such pair of numbers.
        """
        if self.case is not None:
            places = [_place(suite, places, self.case)]
        return _shared(_named(suite, places, self.cases), self.share)


_ALL = Selection()


def plan_suite(
    suite: Suite, out: Path | None, *, resume: bool, selection: Selection = _ALL, ranks: int = 1
) -> list[Planned]:
    """Check the cases that are meant of a suite, and say where each goes and whether it is done.

    Of a suite with a mode, the cases for this number of ranks.

    Parameters
    ----------
    suite : Suite
    out : Path or None
        Folder of the runs; None: the default.
    resume : bool
        Whether unfinished runs are continued.
    selection : Selection, optional
    ranks : int

    Raises
    ------
    BadInput
        The suite is wrong or has no case for so many ranks; a folder holds a run of
        another configuration, or an unfinished one without ``--resume``.
    """
    modes.refuse_ranks(suite.path, suite.mode, [case.ranks for case in suite.cases], ranks)

    def choose(places: Sequence[int]) -> Sequence[int]:
        return selection.of(
            suite, [place for place in places if not suite.mode or ranks in suite.cases[place].ranks]
        )

    root = out if out is not None else locations.RUNS / suite.name
    root = modes.place(root, ranks if suite.mode else 0)
    plan = []
    for checked in check_suite(suite, choose):
        folder = root / checked.case.name
        try:
            done, other = is_done(checked, folder, resume), ""
        except OtherVersion as error:
            done, other = False, error.file
        plan.append(Planned(checked.number, checked, folder, done, other))
    return plan


def _named(suite: Suite, places: Sequence[int], file: Path | None) -> Sequence[int]:
    """Return the cases that a file names, in its order; all without a file."""
    if file is None:
        return places
    by_name = {suite.cases[place].name: place for place in places}
    try:
        names = dict.fromkeys(name for name in file.read_text().splitlines() if name.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--cases {file}: {getattr(error, 'strerror', 'not a text file')}") from error
    for name in names:
        if name not in by_name:
            raise BadInput(f"--cases {file}: {short(name)} is no case of the suite{closest(name, by_name)}")
    return [by_name[name] for name in names]


def _shared(places: Sequence[int], share: str | None) -> Sequence[int]:
    """Return the part that "T/N" means."""
    if share is None:
        return places
    matched = re.fullmatch(r"(\d{1,9})/(\d{1,9})", share)
    if matched is None or int(matched[1]) >= int(matched[2]):
        raise BadInput(f"--share {short(share)}: give T/N with T from 0 to N-1, such as 0/4")
    return places[int(matched[1]) :: int(matched[2])]


def _place(suite: Suite, places: Sequence[int], wanted: str) -> int:
    """Return the case of that number or name; what ``--set`` added to a name may be left out."""
    for place in places:
        if wanted in (str(place), suite.cases[place].name):
            return place
    ends = tuple(f"{wanted}-{key}=" for key in suite.overridden)
    begun = [place for place in places if suite.cases[place].name.startswith(ends)]
    if len(begun) == 1:
        return begun[0]
    cases = f"cases {places[0]} to {places[-1]}; see fedmpi run SUITE --list"
    raise BadInput(f"--case {short(wanted)}: not among the {cases}")


def refuse_other_versions(plan: Sequence[Planned]) -> None:
    """Raise OtherVersion where a folder holds a run of another version of a plug-in."""
    for item in plan:
        if item.other:
            raise OtherVersion(item.folder, item.other)


def is_done(item: Checked, folder: Path, resume: bool) -> bool:
    """Return whether a folder holds the case's complete run.

    Raises
    ------
    BadInput
        It holds a run of another configuration, or an unfinished one that is not to be continued.
    """
    if not holds_run(folder):
        return False
    try:
        run = load_run(folder)
    except BadInput:
        if resume:
            return False  # a damaged file is rebuilt from its events when the run continues
        raise
    refuse_other_config(item.case, run.config, folder)
    if run.status != "complete" and not resume:
        refuse_live(folder)
        raise BadInput(
            f"{folder} holds a run that is {run.status} after round {run.rounds_completed} of {run.rounds}; "
            "add --resume to continue it, or choose another folder with --out"
        )
    return run.status == "complete"


def plan_folder(folder: Path) -> list[Planned]:
    """Return the case that a run folder holds, rebuilt from its stored configuration."""
    checked = check_stored(stored_config(folder), folder)
    return [Planned(0, checked, folder, is_done(checked, folder, True))]


def check_places(plan: Sequence[Planned], source: DataSource) -> None:
    """Refuse, before MPI starts, data that cannot be had and folders that cannot be written.

    Of several ranks one alone may not be able to write: they check folders when they can tell each other.
    """
    for name in dict.fromkeys(item.checked.case.dataset.name for item in plan if not item.done):
        source.check(name)
    for initial in dict.fromkeys(item.checked.case.initial for item in plan if not item.done):
        initial.check()
    if (launch.expected_size() or 1) == 1:
        check_folders(plan)


def check_folders(plan: Sequence[Planned], rank: int = 0) -> None:
    """Raise BadInput unless this rank can write in the folders of all cases that are to be run."""
    try:
        for folder in dict.fromkeys(item.folder for item in plan if not item.done):
            check_writable(folder)
    except BadInput as error:
        raise BadInput(f"rank {rank}: {error}" if rank else str(error)) from error


def check_writable(folder: Path) -> None:
    """Raise BadInput unless `folder` can be made and written, and holds plain files; leaves no trace."""
    try:
        disk.try_writing(folder)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise BadInput(f"cannot write in {folder} ({reason}); choose another --out") from error
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.exists() and not path.is_file() and not path.is_dir():
            raise BadInput(f"{path}: a pipe or device, where a run keeps files; remove it")
