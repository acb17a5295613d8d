"""``fedmpi jobs``: the commands and their options; a suite on a Slurm cluster from plan to finished cases."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fedmpi.cli import jobs_report
from fedmpi.cli.options import Cache, Json, Out, Plugin, Set, SuiteName
from fedmpi.cli.terminal import print_json, say
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.jobs import order as orders
from fedmpi.jobs import slurm, submission
from fedmpi.jobs.order import absolute, changed, reopen
from fedmpi.jobs.ordered import Ordered
from fedmpi.jobs.plan import Wishes
from fedmpi.jobs.status import ask, ask_or_refuse, states
from fedmpi.jobs.submission import Request, earlier

Into = Annotated[Path, typer.Option(help="Folder to write into.")]
Target = Annotated[str, typer.Argument(help="A suite that was submitted, or the folder of its cases.")]


@dataclass(frozen=True)
class Shape(Wishes):
    """How the cases are spread over tasks.

    Attributes
    ----------
    ranks
        Ranks of a case; default one per client and one, on one node: give more for several nodes.
    tasks
        Tasks of an array; default by the estimates.
    at_once
        Tasks that run at a time; default the system's.
    minutes
        Time limit of a task; default by the estimates.
    """

    ranks: Annotated[int | None, typer.Option(min=1, max=1_000_000)] = None
    tasks: Annotated[int | None, typer.Option(min=1)] = None
    at_once: Annotated[int | None, typer.Option(min=1)] = None
    minutes: Annotated[int | None, typer.Option(min=2)] = None


@dataclass(frozen=True)
class Order:
    """The cases of a suite on a system.

    Attributes
    ----------
    system
        Machine: a name of `fedmpi jobs systems` or a file.
    """

    system: Annotated[str, typer.Option()]
    set_: Set = None
    out: Out = None
    plugin: Plugin = None

    def of(self, suite: str, wishes: Wishes, data: Path | None = None) -> Ordered:
        """Return what is ordered of a suite, checked, with paths that hold in any working folder."""
        asked = Request(
            suite=absolute(suite),
            overrides=tuple(self.set_ or ()),
            plugins=tuple(str(path.absolute()) for path in self.plugin or ()),
            data=str(DataSource.from_environment(data).cache.absolute()),
            directory=str(Path.cwd()),
            system=absolute(self.system),
            wishes=wishes,
        )
        return Ordered(asked, self.out)


def plan(
    suite: SuiteName, shape: Shape, order: Order, records: list[Path] | None = None, as_json: Json = False
) -> int:
    """Show cases, ranks, nodes and estimated time of a suite against a system's limits.

    Parameters
    ----------
    records
        Folder of earlier runs to estimate from; may be repeated.

    Examples
    --------
    fedmpi jobs plan gcfl/table3 --system generic-cpu
    """
    ordered = order.of(suite, shape)
    jobs_report.show_plan(ordered, ordered.plan(records=records or []), as_json)
    return 0


def render(
    suite: SuiteName, shape: Shape, order: Order, to: Into, template: str = "sweep", data: Cache = None
) -> int:
    """Write the job scripts and the lists of cases, to be read, edited and submitted by hand.

    Parameters
    ----------
    template
        sweep: an array of cases; cpu, gpu, container: one job.

    Examples
    --------
    fedmpi jobs render gcfl/table3 --system generic-cpu --to scripts
    """
    ordered = order.of(suite, shape, data)
    texts = orders.rendered(ordered, to.absolute(), template)
    try:
        to.mkdir(parents=True, exist_ok=True)
        submission.write(to, texts)
    except OSError as error:
        raise BadInput(f"cannot write in {to}: {error.strerror}; choose another --to") from error
    for name in texts:
        say(to / name)
    scripts = [f"sbatch {quote(str(to / name))}" for name in texts if name.endswith(".sbatch")]
    if scripts:
        *arrays, report = scripts
        text = f"Next: {' && '.join(arrays)}; after their end {report}. fedmpi jobs submit does all of it."
        say(text, sys.stderr)  # what is printed is a list of files
    return 0


def submit(suite: SuiteName, shape: Shape, order: Order, data: Cache = None) -> int:
    """Submit what is missing of a suite as arrays of tasks, and a report after them.

    Examples
    --------
    fedmpi jobs submit gcfl/table3 --system generic-cpu
    """
    ordered = order.of(suite, shape, data)
    active = ask_or_refuse(earlier(ordered.root)).active_jobs()
    if active:
        raise BadInput(
            f"jobs of this suite are in the queue ({', '.join(active)}): see fedmpi jobs status; "
            "fedmpi jobs resume adds what has failed, fedmpi jobs cancel ends them"
        )
    jobs_report.show_submitted(ordered, orders.submit(ordered, ordered.items))
    return 0


def status(
    target: Target,
    out: Out = None,
    as_json: Json = False,
    everything: Annotated[bool, typer.Option("--all")] = False,
) -> int:
    """Show every case: done, running at a round, waiting and why, failed and why.

    Exit code 0: all are done; 75: cases run or wait; 1: some have failed and none is on its way.

    Parameters
    ----------
    everything
        Complete cases, too.

    Examples
    --------
    fedmpi jobs status gcfl/table3
    """
    ordered, before = reopen(target, out)
    queue = ask(before)
    found = states(ordered.items, before, queue)
    if as_json:
        print_json([jobs_report.state_facts(state) for state in found])
    else:
        jobs_report.show_states(ordered, found, queue.trouble, everything)
    if all(state.item.done for state in found):
        return 0
    return 75 if any(state.active or state.word == "running" for state in found) else 1


def resume(target: Target, shape: Shape, system: str | None = None, out: Out = None) -> int:
    """Submit again what is neither complete nor in the queue; complete cases never run again.

    Parameters
    ----------
    system
        Another machine than before.

    Examples
    --------
    fedmpi jobs resume gcfl/table3
    """
    ordered, before = reopen(target, out)
    found = states(ordered.items, before, ask_or_refuse(before))
    jobs_report.say_held(found)
    ordered = changed(ordered, system, shape)
    jobs_report.show_submitted(ordered, orders.submit(ordered, [state.item for state in found if state.left]))
    return 0


def cancel(target: Target, out: Out = None) -> int:
    """Cancel the jobs of a suite that are in the queue.

    Examples
    --------
    fedmpi jobs cancel gcfl/table3
    """
    ordered, before = reopen(target, out)
    targets = ask_or_refuse(before).active_jobs()
    if not targets:
        say("nothing of it is in the queue")
        return 0
    slurm.cancel(targets)
    say(f"cancelled: {', '.join(targets)}; fedmpi jobs resume {quote(str(ordered.root))} goes on")
    return 0


def systems(fields: bool = False) -> int:
    """List the bundled machines, or the fields of their files.

    Parameters
    ----------
    fields
        Every field of a system file.

    Examples
    --------
    fedmpi jobs systems
    """
    jobs_report.show_systems(fields)
    return 0
