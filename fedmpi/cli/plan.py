"""The cases of a suite: where each goes, whether it is done, and whether it can begin."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
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
from fedmpi.store import disk
from fedmpi.store.lock import refuse_live
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import stored_config


@dataclass(frozen=True)
class Planned:
    """A checked case, its number in the suite and its folder; `done` when it is complete already.

    `other` names the plug-in's file if the folder's run is of another version of it.
    """

    number: int
    checked: Checked
    folder: Path
    done: bool
    other: str = ""


def plan_suite(
    suite: Suite, out: Path | None, *, resume: bool, case: str | None = None, ranks: int = 1
) -> list[Planned]:
    """Check a suite and say of each case where it goes and whether it is done.

    Of a suite with a mode, the cases for this number of ranks.

    Parameters
    ----------
    suite : Suite
    out : Path or None
        Folder of the runs; None: the default.
    resume : bool
        Whether unfinished runs are continued.
    case : str, optional
        Name or number of the only case.
    ranks : int

    Raises
    ------
    BadInput
        The suite is wrong or has no case for so many ranks; a folder holds a run of
        another configuration, or an unfinished one without ``--resume``.
    """
    modes.refuse_ranks(suite.path, suite.mode, [case.ranks for case in suite.cases], ranks)
    meant = [checked for checked in check_suite(suite) if not suite.mode or ranks in checked.ranks]
    if case is not None:
        meant = [_select(meant, case, suite.overridden)]
    root = out if out is not None else locations.RUNS / suite.name
    root = modes.place(root, ranks if suite.mode else 0)
    plan = []
    for checked in meant:
        folder = root / checked.case.name
        try:
            done, other = is_done(checked, folder, resume), ""
        except OtherVersion as error:
            done, other = False, error.file
        plan.append(Planned(checked.number, checked, folder, done, other))
    return plan


def only_named(plan: Sequence[Planned], file: Path | None) -> list[Planned]:
    """Return the cases that a file names, one a line, in its order; all without a file.

    Raises
    ------
    BadInput
        The file cannot be read or names a case that is not in the plan.
    """
    if file is None:
        return list(plan)
    by_name = {item.checked.case.name: item for item in plan}
    try:
        names = dict.fromkeys(name for name in file.read_text().splitlines() if name.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--cases {file}: {getattr(error, 'strerror', 'not a text file')}") from error
    for name in names:
        if name not in by_name:
            raise BadInput(f"--cases {file}: {short(name)} is no case of the suite{closest(name, by_name)}")
    return [by_name[name] for name in names]


def shared(plan: Sequence[Planned], share: str | None) -> list[Planned]:
    """Return the part of a plan that "T/N" means: its cases T, T + N, T + 2 N, ...

    Raises
    ------
    BadInput
        Not two numbers, the first below the second.
    """
    if share is None:
        return list(plan)
    matched = re.fullmatch(r"(\d{1,9})/(\d{1,9})", share)
    if matched is None or int(matched[1]) >= int(matched[2]):
        raise BadInput(f"--share {short(share)}: give T/N with T from 0 to N-1, such as 0/4")
    return list(plan[int(matched[1]) :: int(matched[2])])


def refuse_other_versions(plan: Sequence[Planned]) -> None:
    """Raise OtherVersion where a folder holds a run of another version of a plug-in."""
    for item in plan:
        if item.other:
            raise OtherVersion(item.folder, item.other)


def _select(cases: Sequence[Checked], wanted: str, overridden: Collection[str]) -> Checked:
    """Return the case of that number or name; what ``--set`` added to a name may be left out."""
    for checked in cases:
        if wanted in (str(checked.number), checked.case.name):
            return checked
    ends = tuple(f"{wanted}-{key}=" for key in overridden)
    begun = [checked for checked in cases if checked.case.name.startswith(ends)]
    if len(begun) == 1:
        return begun[0]
    first, last = cases[0].number, cases[-1].number
    raise BadInput(f"--case {short(wanted)}: not among the cases {first} to {last}; see them with --list")


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
