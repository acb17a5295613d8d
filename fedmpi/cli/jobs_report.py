"""What ``fedmpi jobs`` prints: plans and states, as tables and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from shlex import quote

import numpy as np

from fedmpi.cli.terminal import print_json, say, show
from fedmpi.jobs import systems
from fedmpi.jobs.cases import num_clients
from fedmpi.jobs.ordered import Ordered
from fedmpi.jobs.plan import Batch, Plan
from fedmpi.jobs.status import State
from fedmpi.jobs.submission import Submission
from fedmpi.tables.table import Column, Entry, Table, listed


def show_plan(ordered: Ordered, plan: Plan, as_json: bool) -> None:
    """Print the batches of a plan, what they take, and how that was estimated."""
    if as_json:
        print_json([_batch_facts(batch) for batch in plan.batches])
        return
    table = Table(_PLAN, plan.batches, f"{ordered.suite.name} on {ordered.request.system}")
    show(*([table] if plan.batches else []), *_plan_notes(ordered, plan))


def _batch_facts(batch: Batch) -> dict[str, object]:
    estimates = zip(batch.items, batch.estimates, strict=True)
    cases = [{"case": item.name, "seconds": each.seconds, "origin": each.origin} for item, each in estimates]
    names = ("ranks", "threads", "nodes", "gpus", "tasks", "at_once", "minutes")
    return {**{name: getattr(batch, name) for name in names}, "cases": cases}


def _origins(batch: Batch) -> str:
    return ", ".join(sorted({estimate.origin for estimate in batch.estimates}))


def _longest(seconds: Iterable[float]) -> Entry:
    """Return the largest time; none where one is not known."""
    return _time(float(np.max(list(seconds))))


def _time(seconds: float) -> Entry:
    if math.isnan(seconds):
        return Entry("?")
    return Entry(f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min", seconds)


_PLAN: tuple[Column[Batch], ...] = (
    Column("estimate from", _origins, spare=2),
    Column("cases", lambda batch: len(batch.items)),
    Column("ranks", attrgetter("ranks")),
    Column("threads", attrgetter("threads"), spare=3),
    Column("nodes", attrgetter("nodes")),
    Column("GPUs/node", attrgetter("gpus"), spare=4),
    Column("tasks", attrgetter("tasks")),
    Column("at a time", attrgetter("at_once")),
    Column(
        "longest case",
        lambda batch: _longest(each.seconds for each in batch.estimates),
        numeric=True,
        spare=1,
    ),
    Column("longest task", lambda batch: _longest(batch.task_seconds()), numeric=True),
    Column("limit", lambda batch: _time(60 * batch.minutes)),
    Column("all", lambda batch: _time(batch.end_seconds()), numeric=True),
)


def _plan_notes(ordered: Ordered, plan: Plan) -> list[str]:
    limits = ordered.system.limits
    lines = [
        f"{plan.total} cases, {plan.done} complete. {ordered.system.description}.",
        f"Limits: {limits.minutes} min, nodes per job {limits.nodes}, tasks per array {limits.tasks}; "
        f"a task that runs out of time is continued up to {limits.requeues} times.",
    ]
    if plan.batches:
        lines += [_used(ordered, plan), *_estimate_notes(ordered, plan)]
    for batch in plan.batches:
        if idle := batch.idle():
            lines.append(
                f"Ranks without work: {len(idle)} of {len(batch.items)} cases on {batch.ranks} ranks have "
                f"fewer clients, such as {idle[0].name} with {num_clients(idle[0].case)}."
            )
    return lines


def _used(ordered: Ordered, plan: Plan) -> str:
    """Return what all cases take of the machine, in one line."""
    core_hours = sum(each.known_seconds() * each.ranks * each.threads for each in plan.batches) / 3600
    node_hours = sum(each.known_seconds() * each.nodes for each in plan.batches) / 3600
    nodes = f", {node_hours:.3g} node-hours where a job has its nodes alone"
    queued = ordered.system.launch.scheduler != "none"
    return f"All cases: {core_hours:.3g} core-hours (ranks x threads){nodes if queued else ''}."


def _estimate_notes(ordered: Ordered, plan: Plan) -> list[str]:
    """Return what the estimates are from, and what is not known."""
    model = ordered.system.model
    origins = Counter(estimate.origin for batch in plan.batches for estimate in batch.estimates)
    recorded = origins["record"] + origins["like ones"]
    lines = [f"Estimated from records: {recorded} of {origins.total()} cases."]
    if origins["model"]:
        lines.append(
            f"Model: {model.start_seconds:g} s to start, {model.round_seconds:g} s a round, and model FLOP "
            f"at {model.gflops:g} GFLOP/s per rank with clients. Earlier runs are better: --records FOLDER."
        )
    if origins["unknown"]:
        lines.append(
            f"Unknown, ?: {origins['unknown']} cases, left out of the hours. The sizes of the dataset or the "
            "FLOP of the network are not known; their tasks ask for the longest time. --records FOLDER helps."
        )
    return lines


def show_submitted(ordered: Ordered, submitted: Submission | None) -> None:
    """Say which jobs were submitted."""
    if submitted is None:
        say(f"{ordered.suite.name}: nothing is left to submit")
        return
    for job in submitted.jobs:
        what = f"{len(job.cases)} cases in {job.tasks} tasks" if job.cases else "the report after them"
        say(f"job {job.number}: {what} ({submitted.folder / job.script})")
    say(f"Next: fedmpi jobs status {quote(str(ordered.root))}")


def show_states(ordered: Ordered, states: Sequence[State], trouble: str, everything: bool) -> None:
    """Print the cases that are not complete, or all, with how many are in which state.

    Parameters
    ----------
    ordered : Ordered
    states : sequence of State
        Of all its cases.
    trouble : str
        Why Slurm could not be asked, if so.
    everything : bool
        Whether complete cases are listed, too.
    """
    shown = [state for state in states if everything or not state.item.done]
    if shown:
        show(Table(_STATES, shown, f"{ordered.suite.name} in {ordered.root}"))
    counts = sorted(Counter(state.word for state in states).items())
    say(f"{len(states)} cases: {', '.join(f'{count} {word}' for word, count in counts)}")
    if trouble:
        say(f"fedmpi: {trouble}; shown is what the records say")
        return
    if left := sum(state.left for state in states):
        say(f"{left} are not on their way: fedmpi jobs resume {quote(str(ordered.root))}")
    say_held(states)


_STATES: tuple[Column[State], ...] = (
    Column("case", attrgetter("item.name")),
    Column("state", attrgetter("word")),
    Column("", attrgetter("detail"), wrapped=True),
    Column("task", attrgetter("job")),
)


def say_held(states: Sequence[State]) -> None:
    """Name the cases that run, or seem to, outside of the queue."""
    if held := [state.item.name for state in states if state.held]:
        say(
            f"{', '.join(held)}: locked by a run that is not in the queue; if it was killed, "
            "its lock ends two minutes later"
        )


def state_facts(state: State) -> dict[str, object]:
    """Return a case's state as JSON values."""
    item = state.item
    facts = {"case": item.name, "state": state.word, "detail": state.detail, "task": state.job}
    return {**facts, "rounds": item.rounds, "rounds_planned": item.case.rounds, "folder": str(item.folder)}


def show_systems(fields: bool) -> None:
    """Print the known systems, or the fields of a system file."""
    title = "Fields of a system file" if fields else "Systems"
    headings = ("field", "default", "meaning") if fields else ("name", "description")
    described = [(name, systems.load(name).description) for name in systems.known()]
    rows: Sequence[Sequence[str]] = list(systems.fields()) if fields else described
    show(Table(listed(headings, wrapped=headings[-1:]), rows, title))
