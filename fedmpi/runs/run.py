"""One case from data to finished record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation, assemble, deal, load
from fedmpi.client.states import States
from fedmpi.client.warm_up import warm_up, warm_up_anew
from fedmpi.clock import Stopwatch
from fedmpi.comm.selftest import check_device_buffers, check_sums
from fedmpi.comm.transports import closing, connect
from fedmpi.comm.world import World
from fedmpi.datasets.loading import load_all
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.views import view_of
from fedmpi.errors import BadInput, Diverged, Interrupted, TooFewLeft
from fedmpi.exchange.links import state_of
from fedmpi.exchange.meter import find_energy
from fedmpi.exits import exits_raised
from fedmpi.graphs import jit
from fedmpi.partition.table import PartitionTable
from fedmpi.partition.table import describe as describe_partition
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.runs.checkpoints import Saved
from fedmpi.runs.dry_call import try_out
from fedmpi.runs.facts import contents_of, digests_of, facts_of, notices_of
from fedmpi.runs.first_answers import check_start
from fedmpi.runs.initial import Tensors, read_initial
from fedmpi.runs.observer import Observer
from fedmpi.runs.real_clock import go_on, known_order
from fedmpi.runs.recording import Recording
from fedmpi.runs.rounds import Rounds
from fedmpi.runs.run_folder import RunFolder
from fedmpi.runs.signals import StopRequest
from fedmpi.runs.watchdog import Watchdog
from fedmpi.schedules.recorded import Order
from fedmpi.store import runfile
from fedmpi.store.schema import PREPARATION_SECONDS
from fedmpi.store.transcript import Transcript

Note = Callable[[str], None]
"""Shows a line to the user, from rank 0."""

_PATIENCE_S = 3.0
"""Seconds of compilation after which the user gets a line about it."""


@dataclass(frozen=True)
class Job:
    """A case with its algorithm and its places: what `run` needs beside the ranks."""

    case: Case
    algorithm: Algorithm
    folder: Path
    source: DataSource
    resume: bool
    checkout: dict[str, Any]
    """Git state of the source, asked for before MPI started."""
    audit: int | None = None
    """Bytes of rank 0's messages that the audit keeps beside their digests; None: no audit."""
    order: Order | None = None
    """Of a run by the real clock that is computed again."""


def run(job: Job, world: World, observer: Observer, stop: StopRequest) -> None:
    """Run or continue one case; a collective call.

    Parameters
    ----------
    job : Job
    world : World
    observer : Observer
        Shows progress to the user; called on rank 0 only.
    stop : StopRequest
        Set by signals; the run then stops after the round.

    Raises
    ------
    BadInput
        On every rank: data, partition or run folder cannot be used.
    Diverged
        On every rank: a client's loss or update is not finite.
    Interrupted
        A signal asked to stop: on every rank, after a round and its checkpoint, or on one rank, in a phase
        before the rounds or where it stands still.
    RankFailed
        A hook of the algorithm returned what it must not, or stands still.
    """
    where = Position()
    transcript = None if job.audit is None else Transcript(lambda: where.round, job.audit)
    world.collectives.listener = transcript.message if transcript else None
    run_folder = RunFolder(job.case, job.folder, world, where, transcript)
    try:
        with (
            exits_raised(),
            Watchdog(where, job.case.watchdog_seconds, stop, world),
            closing(world.collectives),
            run_folder,
        ):
            world.together(partial(_set_arithmetic, job.case))
            world.agree(partial(_prepare, job))
            _run(job, world, observer, stop, where, run_folder)
    finally:
        world.collectives.listener = None


def _run(
    job: Job, world: World, observer: Observer, stop: StopRequest, where: Position, run_folder: RunFolder
) -> None:
    case, note = job.case, observer.note if world.is_root else _unheard
    federation, table = world.together(partial(_federation, job))
    hooks = Hooks(job.algorithm, federation.num_clients, where)
    check_start(case, hooks, federation, world)
    initial = world.together(partial(read_initial, case, federation))
    digests = digests_of(case, job.source, federation) if world.is_root else {}
    energy = find_energy(case, world)
    contents = contents_of(case, hooks, federation, table, digests, energy) if world.is_root else None
    states = _tried_out(job, hooks, world, federation, initial, note)
    opening = run_folder.open(contents, resume=job.resume)
    if opening.first_round >= case.rounds:
        note(opening.notice)
        return
    states = states or _states(case, hooks, world, federation, initial, note)
    _connect(case, world, states, note)
    rounds = Rounds(case, hooks, world, federation, states, energy.recorded(opening.fields))
    saved = run_folder.find_checkpoint(rounds)
    if saved is not None:
        opening = replace(opening, first_round=saved.rounds, from_checkpoint=True)
    if opening.first_round >= case.rounds:  # killed after its last checkpoint
        run_folder.finish("complete")
        return
    begun = _begin(rounds, federation, saved, stop, note)
    if case.evaluation.patience and world.agree(lambda: rounds.ended):  # killed after its last checkpoint
        run_folder.finish("complete")
        return
    if job.order is not None:
        rounds.follow(job.order)
    elif case.schedule.races:
        rounds.follow(known_order(case, job.folder, world, federation.num_clients, opening.recorded))
    known = {**begun, "energy": energy.describe(), "datasets": digests}
    facts = facts_of(case, world, federation, states, hooks, table) | known
    metrics = federation.task.metrics
    del saved, federation  # with them all data but what the hosted clients hold
    stop.begin()
    run_folder.begin_attempt(opening.first_round, facts, job.checkout)
    if world.is_root:
        observer.begin(case, metrics, table, opening, facts)
        for line in notices_of(case, job.source, world, table, facts, opening.notice):
            note(line)
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges says so itself
        _loop(rounds, run_folder, stop, observer, note, opening.first_round)


def _unheard(text: str) -> None:
    """Drop a line of a rank other than 0."""


def _tried_out(
    job: Job, hooks: Hooks, world: World, federation: Federation, initial: Tensors, note: Note
) -> States | None:
    """Return this rank's clients once a plug-in was tried on them; None where none is, or a run goes on."""
    begun = world.agree(lambda: job.resume and (job.folder / runfile.NAME).exists())
    if begun or not hooks.is_plugin:
        return None
    states = _states(job.case, hooks, world, federation, initial, note)
    world.together(partial(try_out, job.case, job.algorithm, states, hooks.where))
    return states


def _states(
    case: Case, hooks: Hooks, world: World, federation: Federation, initial: Tensors, note: Note
) -> States:
    """Return this rank's clients, once their kernels are compiled."""
    _compile(case, world, note)
    return world.together(partial(States, case, hooks, world, federation, state_of(case), initial))


def _set_arithmetic(case: Case) -> None:
    """Fix the arithmetic of processor and torch for the whole run."""
    torch.set_num_threads(case.threads)
    torch.set_deterministic_debug_mode("error")  # its other name imports torch's compiler: 1 to 2 s
    # Else torch writes NaN into every new tensor, up to 9 % of a round.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    for kind in (np.float32, np.float64):
        np.finfo(kind)  # kept by NumPy, which warns when it looks for subnormal numbers and finds none
    flushed = case.subnormals == "flushed"
    if not torch.set_flush_denormal(flushed) and flushed:
        raise BadInput('subnormals = "flushed": this processor cannot flush them; use "kept"')


def _begin(
    rounds: Rounds, federation: Federation, saved: Saved | None, stop: StopRequest, note: Note
) -> dict[str, float]:
    """Start clients and server, and run the clients' programs before round 1, if there are any.

    Returns what the provenance says of the programs.
    """
    rounds.begin(saved)
    hooks, facts = rounds.algorithm, dict[str, float]()
    if hooks.prepares:
        note(f"{hooks.name}: clients work together before round 1")
    prepared = rounds.prepare(federation, stop, again=saved is not None)
    if prepared is not None:
        nodes = f", and added {prepared.nodes.sum():,} nodes to their graphs" if prepared.nodes.any() else ""
        note(f"{hooks.name}: they took {prepared.seconds:.0f} s{nodes}")
        facts[PREPARATION_SECONDS] = prepared.seconds
    if rounds.world.is_root:
        hooks.warm_up()
        federation.task.warm_up()
    return facts


def _connect(case: Case, world: World, states: States, note: Note) -> None:
    """Test MPI on device memory, and sums without MPI, where the case uses them."""
    if case.reduction.buffers != "host":
        note('testing device buffers; if the run ends here, use reduction.buffers = "host"')
        note(world.together(partial(check_device_buffers, world, states.device)))
    if case.reduction.transport != "mpi":
        connect(case.reduction.transport, world, states.device)
        check_sums(world)


def _compile(case: Case, world: World, note: Note) -> None:
    """Have rank 0 compile the kernels, once per machine, and the other ranks take them from its cache."""
    watch, saved = Stopwatch(), jit.num_saved()
    text = f"preparing the kernels of {case.model.name}: the first time on a machine it can take some minutes"
    notice = threading.Timer(_PATIENCE_S, note, [text])
    notice.daemon = True
    notice.start()
    try:
        world.agree(partial(warm_up_anew, case))
    finally:
        notice.cancel()
    if jit.num_saved() > saved:
        note(f"compiled the kernels in {watch.wall:.0f} s; they are kept for the next run")
    world.together(partial(warm_up, case))


def _prepare(job: Job) -> None:
    """Bring data, and the view that the objective asks for, into the cache."""
    job.source.prepare(job.case.dataset.name)
    if job.case.objective.view is not None:
        for raw in load_all(job.case.dataset, job.source):
            view_of(raw, job.case.objective.view, job.source.cache)


def _federation(job: Job) -> tuple[Federation, PartitionTable]:
    """Assemble the federation from prepared data: the same on every rank."""
    raws = load(job.case, job.source)
    partition = deal(job.case, job.algorithm, raws)
    return assemble(job.case, raws, partition, job.source.cache), describe_partition(partition, raws)


def _loop(
    rounds: Rounds,
    run_folder: RunFolder,
    stop: StopRequest,
    observer: Observer,
    note: Note,
    first_round: int,
) -> None:
    """Run the rounds that are left, recording each, and record how the run ended."""
    recording = Recording(rounds, run_folder, observer)
    rounds.meter.start_clock()
    try:
        with recording:
            _run_rounds(rounds, run_folder, recording, stop, note, first_round)
    except (Diverged, TooFewLeft) as error:
        run_folder.finish("diverged" if isinstance(error, Diverged) else "failed", str(error))
        raise
    run_folder.finish("complete")


def _run_rounds(
    rounds: Rounds,
    run_folder: RunFolder,
    recording: Recording,
    stop: StopRequest,
    note: Note,
    first_round: int,
) -> None:
    """Run the rounds that are left; write checkpoints when they are due."""
    case, saved = rounds.case, time.monotonic()
    for number in range(first_round, case.rounds):
        go_on(rounds, number, run_folder, stop, note)
        last = number + 1 == case.rounds
        due = time.monotonic() - saved >= case.checkpoint_seconds or (last and case.checkpoints == "kept")
        plan, report = rounds.run(number, stop=stop, checkpoint=due)
        with rounds.meter.phase("record" if rounds.world.is_root or plan.checkpoint else "wait"):
            if report is not None:
                recording.take(report, at_once=plan.checkpoint or plan.ended)  # shown before the end is
            if plan.checkpoint:
                run_folder.checkpoint(number + 1, rounds)
                saved = time.monotonic()
        if plan.ended:
            note(
                f"ended with round {number + 1} of {case.rounds}: no better validation score in "
                f"{case.evaluation.patience} rounds"
            )
            break
        if plan.stop and not last:  # saved, and so recorded
            reason = f"stopped by a signal after round {number + 1} of {case.rounds}"
            run_folder.finish("interrupted", reason)
            raise Interrupted(f"{reason}; run the same command with --resume to continue")
