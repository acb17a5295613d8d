"""``fedmpi run``: checks before MPI starts, then the cases one after another."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedmpi.case.folders import OtherVersion, holds_run, refuse_other_config
from fedmpi.cli import output
from fedmpi.cli.options import OneCase, SuiteOptions
from fedmpi.cli.terminal import say
from fedmpi.comm import launch
from fedmpi.comm.start import load_world
from fedmpi.config import locations, modes
from fedmpi.config.documents import short
from fedmpi.config.suite import Suite, read
from fedmpi.datasets.source import DataSource
from fedmpi.engine.signals import StopRequest
from fedmpi.errors import BadInput, Diverged, FedmpiError, Interrupted
from fedmpi.registry.check import Checked, check_stored, check_suite
from fedmpi.registry.kinds import load_plugins
from fedmpi.store.lock import refuse_live
from fedmpi.store.provenance import checkout_state
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import stored_config

if TYPE_CHECKING:
    from fedmpi.comm.world import World


_MOST_KEPT = 2**30
"""Bytes of messages that ``--audit-bytes`` keeps of a run."""

Audited = Annotated[bool, typer.Option("--audit", help="Keep a transcript of rank 0's messages.")]
AuditedBytes = Annotated[bool, typer.Option("--audit-bytes", help="The same with contents, up to 1 GiB.")]


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


def run(
    target: Annotated[
        str, typer.Argument(help="A suite (file or bundled name), or a run folder with --resume.")
    ],
    options: SuiteOptions,
    case: OneCase = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue unfinished cases.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
    audit: Audited = False,
    audit_bytes: AuditedBytes = False,
) -> int:
    """Run a suite's cases in order, on as many ranks as mpiexec starts; complete ones are skipped.

    Examples
    --------
    fedmpi run gcfl/proteins --list
    mpiexec -n 3 fedmpi run synthetic/quick --set rounds=5
    """
    load_plugins(options.plugins)
    if resume and holds_run(Path(target)):
        if options.overrides or case is not None or options.out is not None or list_:
            raise BadInput("a run that is resumed from its folder takes no --set, --case, --out or --list")
        plan = _plan_folder(Path(target))
    elif holds_run(Path(target)):
        raise BadInput(f"{target} is a run folder: add --resume to continue it, or see fedmpi report")
    else:
        suite = read(locations.find(target), options.overrides)
        ranks = launch.planned_size() if list_ else launch.expected_size()
        if list_ and suite.mode and ranks is None:
            return _list_mode(suite)
        plan = plan_suite(suite, options.out, resume=resume or list_, case=case, ranks=ranks or 1)
        if list_:
            return _list(suite, plan)
        refuse_other_versions(plan)
    source = options.source()
    check_places(plan, source)
    for item in plan:
        refuse_live(item.folder)
    kept = _MOST_KEPT if audit_bytes else 0
    return _run_all(plan, source, resume, _audited(plan, kept) if audit or audit_bytes else None)


def _audited(plan: Sequence[Planned], kept: int) -> int:
    """Return the bytes that an audit keeps.

    Raises
    ------
    BadInput
        A case's messages are in a device's memory.
    """
    if any(item.checked.case.reduction.buffers == "device" for item in plan):
        raise BadInput('--audit reads messages in host memory: use reduction.buffers = "host"')
    return kept


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


def _plan_folder(folder: Path) -> list[Planned]:
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
    present = folder
    while not present.exists() and present != present.parent:
        present = present.parent
    try:
        with tempfile.TemporaryFile(dir=present):
            pass
    except OSError as error:
        reason = f"{present}: {error.strerror}"
        raise BadInput(f"cannot write in {folder} ({reason}); choose another --out") from error
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.exists() and not path.is_file() and not path.is_dir():
            raise BadInput(f"{path}: a pipe or device, where a run keeps files; remove it")


def _list(suite: Suite, plan: Sequence[Planned]) -> int:
    if launch.rank() == 0:
        say(f"{suite.name}: {suite.description or 'no description'}")
        for item in plan:
            say(f"{item.number:4d}  {item.checked.case.name}{_state(item)}")
    return 0


def _state(item: Planned) -> str:
    """Return what the folder of a case holds, in parentheses; nothing for a case that has not begun."""
    if item.done:
        return "  (complete)"
    if item.other:
        return f"  (made with another version of {item.other})"
    if not holds_run(item.folder):
        return ""
    try:
        run = load_run(item.folder)
    except BadInput:
        return "  (begun)"
    return f"  ({run.status} after round {run.rounds_completed} of {run.rounds})"


def _list_mode(suite: Suite) -> int:
    """List the cases of a suite with a mode, with the numbers of ranks that each is for."""
    say(f"{suite.name}: {suite.description or 'no description'} ({suite.mode} scaling)")
    for checked in check_suite(suite):
        ranks = ", ".join(map(str, checked.ranks))
        say(f"{checked.number:4d}  {checked.case.name}  on {ranks} ranks")
    return 0


def _run_all(plan: Sequence[Planned], source: DataSource, resume: bool, audit: int | None) -> int:
    threads = max(item.checked.case.threads for item in plan)
    if threads > launch.available_cores():
        raise BadInput(f"threads = {threads}, but this process may use {launch.available_cores()} cores")
    launch.set_defaults(threads)
    for checked in (item.checked for item in plan if not item.done and item.checked.case.plugin):
        from fedmpi.engine.start import refuse_unequal  # imports torch

        refuse_unequal(checked.case, checked.algorithm)
    output.outlive()
    checkout = checkout_state() if launch.rank() == 0 else {}
    with StopRequest() as stop:
        comm = load_world()
        world: World = comm.World()
        stop.listen()
        try:
            return _run_cases(_agreed(plan, world, audit), source, world, stop, checkout, resume, audit)
        except FedmpiError as error:
            if error.agreed or world.size == 1:
                raise
            world.fail(error)
        except BaseException as error:
            return comm.abort(error)  # type: ignore[no-any-return]


def _agreed(plan: Sequence[Planned], world: World, audit: int | None) -> list[Planned]:
    """Return rank 0's view of what is done, which another rank may not see yet on a shared file system.

    Raises
    ------
    BadInput
        The ranks were started with different suites, options or folders.
    """
    mine = [(str(item.folder.absolute()), item.checked.case.digest()) for item in plan], audit
    theirs, done = world.agree(lambda: (mine, [item.done for item in plan]))

    def compare() -> None:
        if mine != theirs:
            raise BadInput(f"rank {world.rank} was started with other cases, folders or audit than rank 0")

    world.together(compare)
    agreed = [replace(item, done=flag) for item, flag in zip(plan, done, strict=True)]
    world.together(lambda: check_folders(agreed, world.rank))
    return agreed


def _run_cases(
    plan: Sequence[Planned],
    source: DataSource,
    world: World,
    stop: StopRequest,
    checkout: dict[str, Any],
    resume: bool,
    audit: int | None,
) -> int:
    """Run the cases that are not complete, on all ranks; a case that diverges does not keep the others."""
    from fedmpi.cli.progress import Console
    from fedmpi.engine.run import Job, run

    console = Console(sys.stdout)
    worst = 0
    for item in plan:
        if item.done:
            if world.is_root:
                console.note(f"{item.folder}: complete, skipped")
            continue
        if world.any(stop.requested):
            raise Interrupted(f"stopped by a signal before {item.folder}; run the same command again")
        job = Job(item.checked.case, item.checked.algorithm, item.folder, source, resume, checkout, audit)
        try:
            run(job, world, console, stop)
        except Diverged as error:
            worst = error.exit_code
            if world.is_root:
                console.note(f"{item.folder}: diverged: {error}")
        finally:
            console.close()
    if world.is_root:
        console.finish([item.folder for item in plan])
    return worst
