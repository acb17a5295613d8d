"""``fedmpi run``: checks before MPI starts, then the cases one after another."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedmpi.case.folders import holds_run
from fedmpi.cli import plan as plans
from fedmpi.cli.ending import before_mpi
from fedmpi.cli.options import Cases, OneCase, SuiteOptions
from fedmpi.cli.plan import Planned, Selection
from fedmpi.cli.session import Session, with_session
from fedmpi.cli.terminal import say
from fedmpi.cli.workers import run_handed_out
from fedmpi.comm import launch
from fedmpi.config import locations
from fedmpi.config.suite import Suite, read
from fedmpi.errors import BadInput
from fedmpi.registry.check import Checked, check_suite
from fedmpi.registry.kinds import load_plugins
from fedmpi.store.lock import refuse_live
from fedmpi.store.reader import load_run

if TYPE_CHECKING:
    from fedmpi.comm.world import World

_MOST_KEPT = 2**30
"""Bytes of messages that ``--audit-bytes`` keeps of a run."""


def run(
    target: str,
    options: SuiteOptions,
    case: OneCase = None,
    cases: Cases = None,
    resume: bool = False,
    list_: bool = False,
    audit: bool = False,
    audit_bytes: bool = False,
    answers: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> int:
    """Run a suite's cases in order, on as many ranks as mpiexec starts; complete ones are skipped.

    Parameters
    ----------
    target
        A suite (file or bundled name), or a run folder with --resume.
    resume
        Continue unfinished cases.
    list_
        List the cases and stop.
    audit
        Keep a transcript of rank 0's messages.
    audit_bytes
        The same with contents, up to 1 GiB.
    answers
        Of a worker of fedmpi sweep: the file that it answers in.

    Examples
    --------
    fedmpi run gcfl/proteins --list
    mpiexec -n 3 fedmpi run synthetic/quick --set rounds=5
    """
    with nullcontext() if list_ else before_mpi():
        load_plugins(options.plugins)
        if holds_run(Path(target)):
            if not resume:
                raise BadInput(f"{target} is a run folder: add --resume to continue it, or see fedmpi report")
            if options.overrides or options.out is not None or (case, cases) != (None, None) or list_:
                raise BadInput(
                    "a run that is resumed from its folder takes no --set, --case, --out or --list"
                )
            plan = plans.plan_folder(Path(target))
        else:
            suite = read(locations.find(target), options.overrides)
            ranks = launch.planned_size() if list_ else launch.expected_size()
            if list_ and suite.mode and ranks is None:
                return _list_mode(suite)
            selection = Selection(case, cases)
            plan = plans.plan_suite(
                suite, options.out, resume=resume or list_, selection=selection, ranks=ranks or 1
            )
            if list_:
                return _list(suite, plan)
            if answers is not None:
                return with_session(plan, options.source(), partial(run_handed_out, plan, answers))
            plans.refuse_other_versions(plan)
        if (audit or audit_bytes) and any(item.checked.case.reduction.on_device for item in plan):
            text = 'use reduction.buffers = "host" and transport = "mpi"'
            raise BadInput(f"--audit reads messages in host memory: {text}")
        source = options.source()
        plans.check_places(plan, source)
        for item in plan:
            refuse_live(item.folder)
        kept = _MOST_KEPT if audit_bytes else 0 if audit else None
        return with_session(plan, source, partial(_run_cases, plan, resume, kept))


def _list(suite: Suite, plan: Sequence[Planned]) -> int:
    """List cases, with what their folders hold."""
    return _listed(suite, "", ((item.checked, _state(item)) for item in plan)) if launch.rank() == 0 else 0


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
    ranks = ((each, f"  on {', '.join(map(str, each.ranks))} ranks") for each in check_suite(suite))
    return _listed(suite, f" ({suite.mode} scaling)", ranks)


def _listed(suite: Suite, more: str, cases: Iterable[tuple[Checked, str]]) -> int:
    say(f"{suite.name}: {suite.description or 'no description'}{more}")
    for checked, about in cases:
        say(f"{checked.number:4d}  {checked.case.name}{about}")
    return 0


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
    world.together(lambda: plans.check_folders(agreed, world.rank))
    return agreed


def _run_cases(plan: Sequence[Planned], resume: bool, audit: int | None, session: Session) -> int:
    """Run the cases that are not complete, on all ranks; a case that diverges does not keep the others."""
    from fedmpi.cli.progress import Console

    console, is_root, worst = Console(sys.stdout), session.world.is_root, 0
    for item in _agreed(plan, session.world, audit):
        if not item.done:
            worst = max(worst, session.run(item, console, resume, audit))
        elif is_root:
            console.note(f"{item.folder}: complete, skipped")
    if is_root:
        console.finish([item.folder for item in plan])
    return worst
