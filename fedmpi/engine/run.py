"""One case from data to finished record."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.schema import Case
from fedmpi.clock import Stopwatch
from fedmpi.comm.collectives import NAMES
from fedmpi.comm.devices import describe
from fedmpi.comm.selftest import check_device_buffers
from fedmpi.comm.settings import shared_cores, shared_devices
from fedmpi.comm.world import World
from fedmpi.datasets.loading import digest_of, load_all
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.views import view_of
from fedmpi.engine import attacks, mending, privacy
from fedmpi.engine.counted import is_counted
from fedmpi.engine.dropouts import Dropouts
from fedmpi.engine.energy import find as find_energy
from fedmpi.engine.federation import Federation, assemble, deal, load
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.rounds import RoundReport, Rounds
from fedmpi.engine.run_folder import Opening, RunFolder
from fedmpi.engine.signals import StopRequest
from fedmpi.engine.start import check_start
from fedmpi.engine.states import States
from fedmpi.engine.warm_up import warm_up, warm_up_anew
from fedmpi.engine.watchdog import Watchdog
from fedmpi.engine.whereabouts import Whereabouts
from fedmpi.errors import BadInput, Diverged, Interrupted, TooFewLeft
from fedmpi.exits import exits_raised
from fedmpi.graphs import jit
from fedmpi.heterogeneity.leakage import leakage
from fedmpi.metrics.metric import Metric
from fedmpi.models.counted import BY_FORMULA, COUNTED
from fedmpi.partition.table import PartitionTable
from fedmpi.partition.table import describe as describe_partition
from fedmpi.store.provenance import collect
from fedmpi.store.schema import CLIENT_ID, Field, secure_fields
from fedmpi.store.transcript import Transcript


class Observer(Protocol):
    """Callbacks of a front end; called on rank 0 only."""

    def begin(
        self,
        case: Case,
        metrics: tuple[Metric, ...],
        table: PartitionTable,
        opening: Opening,
        facts: dict[str, Any],
    ) -> None:
        """Show what is known before the first round: data, partition and record are ready.

        Parameters
        ----------
        case : Case
        metrics : tuple of Metric
            By which the run is judged; the headline first.
        table : PartitionTable
            Clients with their numbers of graphs.
        opening : Opening
            The first round to compute, and how the run folder was opened.
        facts : dict
            Machine, placement of clients and datasets, as the provenance records them.
        """

    def round(self, report: RoundReport) -> None:
        """Show a recorded round."""

    def note(self, text: str) -> None:
        """Show a line to the user."""


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
        On every rank: a signal asked to stop; a checkpoint was written.
    RankFailed
        A hook of the algorithm returned what it must not, or stands still.
    """
    where = Whereabouts()
    transcript = None if job.audit is None else Transcript(lambda: where.round, job.audit)
    world.collectives.listener = transcript
    try:
        with exits_raised(), Watchdog(where, job.case.watchdog_seconds, stop, world):
            _run(job, world, observer, stop, where, transcript)
    finally:
        world.collectives.listener = None


def _run(
    job: Job,
    world: World,
    observer: Observer,
    stop: StopRequest,
    where: Whereabouts,
    transcript: Transcript | None,
) -> None:
    case = job.case
    world.agree(partial(_set_arithmetic, case))
    world.agree(partial(_prepare, job))
    federation, table = world.together(lambda: _federation(job))
    hooks = Hooks(job.algorithm, federation.num_clients, where)
    with RunFolder(case, job.folder, world, where, transcript) as run_folder:
        check_start(case, hooks, federation, world)
        digests = _digests(job, federation) if world.is_root else {}
        partition = _stored_partition(federation, table, digests) if world.is_root else {}
        task = federation.task
        energy = find_energy(case, world)
        fields = (*_fields(case, hooks, federation), *energy.fields)
        opening = run_folder.open(table.clients, partition, fields, task.metrics, resume=job.resume)
        if opening.first_round >= case.rounds:
            if world.is_root:
                observer.note(opening.notice)
            return
        _compile(case, world, observer)
        states = world.together(partial(States, case, hooks, world, federation))
        _test_buffers(case, world, states, observer)
        rounds = Rounds(case, hooks, world, federation, states, energy.recorded(opening.fields))
        saved = run_folder.find_checkpoint(rounds)
        if saved is not None:
            opening = replace(opening, first_round=saved.rounds, from_checkpoint=True)
        if opening.first_round >= case.rounds:  # killed after its last checkpoint
            run_folder.finish("complete")
            return
        rounds.begin(saved)
        mended = _mend(rounds, federation, stop, observer)
        del saved  # the clients hold it now
        if world.is_root:
            hooks.warm_up()
            task.warm_up()
        known = {"energy": energy.describe(), "datasets": digests}
        facts = {**_facts(world, federation, states), **mended, **known}
        del federation  # with it all data but what the hosted clients hold
        provenance = collect(facts, job.checkout) if world.is_root else {}
        stop.begin()
        if transcript is not None:
            transcript.begin(world.size, facts["rank_of_client"])
        run_folder.begin_attempt(opening.first_round, list(NAMES), provenance)
        if world.is_root:
            observer.begin(case, task.metrics, table, opening, facts)
            _announce(job, hooks, world, table, opening, observer, facts)
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges says so itself
            _loop(rounds, run_folder, stop, observer, opening.first_round)


def _fields(case: Case, hooks: Hooks, federation: Federation) -> tuple[Field, ...]:
    """Return the fields of the record that this case has beside those of all."""
    own = (*attacks.fields_of(case), *privacy.fields_of(case), *_place_fields(federation))
    added = (*mending.fields_of(hooks), *_reduction_fields(case, federation.num_clients))
    return (*hooks.fields(), *federation.task.fields, *own, *added)


def _place_fields(federation: Federation) -> tuple[Field, ...]:
    """Return the field that says who had a place, where clients are sampled from a population."""
    return () if federation.partition.population is None else (CLIENT_ID,)


def _reduction_fields(case: Case, num_clients: int) -> tuple[Field, ...]:
    """Return the fields of the record that dropouts and secure sums add."""
    added = Dropouts(case.reduction.dropouts, case.seed, num_clients).fields
    return (*added, *(secure_fields() if case.reduction.secret else ()))


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


def _mend(rounds: Rounds, federation: Federation, stop: StopRequest, observer: Observer) -> dict[str, Any]:
    """Mend the clients' parts of a graph, if the algorithm does; return what the provenance says of it."""
    name, is_root = rounds.algorithm.name, rounds.world.is_root
    if rounds.algorithm.mending is not None and is_root:
        observer.note(f"{name}: clients mend their parts of the graph before round 1")
    mended = rounds.mend(federation, stop)
    if mended is None:
        return {}
    if is_root:
        nodes = int(mended.nodes.sum())
        observer.note(f"{name}: generated {nodes:,} nodes in {mended.seconds:.0f} s")
    return {"mending_seconds": mended.seconds}


def _test_buffers(case: Case, world: World, states: States, observer: Observer) -> None:
    """Test MPI on device memory, where the case uses it."""
    if case.reduction.buffers == "host":
        return
    if world.is_root:
        observer.note('testing device buffers; if the run ends here, use reduction.buffers = "host"')
    line = world.together(partial(check_device_buffers, world, states.device))
    if world.is_root:
        observer.note(line)


def _compile(case: Case, world: World, observer: Observer) -> None:
    """Have rank 0 compile the kernels, once per machine, and the other ranks take them from its cache."""
    watch, saved = Stopwatch(), jit.num_saved()
    text = f"preparing the kernels of {case.model.name}: the first time on a machine it can take some minutes"
    notice = threading.Timer(_PATIENCE_S, observer.note, [text])
    notice.daemon = True
    if world.is_root:
        notice.start()
    try:
        world.agree(partial(warm_up_anew, case))
    finally:
        notice.cancel()
    if world.is_root and jit.num_saved() > saved:
        observer.note(f"compiled the kernels in {watch.wall:.0f} s; they are kept for the next run")
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


def _stored_partition(
    federation: Federation, table: PartitionTable, digests: Mapping[str, str]
) -> dict[str, npt.NDArray[Any]]:
    """Return what the record holds of the partition: who has what, twins of test graphs, data digests."""
    twins = leakage(federation.partition.trained, federation.raws).clients[: federation.num_clients]
    population = federation.partition.population
    refused = federation.raws[0].refused
    return {
        **table.arrays(),
        **({"refused": np.array(refused)} if refused else {}),
        **(
            {}
            if population is None
            else {"population": np.array(population.size), "pool_index": population.pool}
        ),
        **federation.task.partition(),
        "test_twin_own": np.concatenate([client.own for client in twins]).astype(np.uint8),
        "test_twin_other": np.concatenate([client.other for client in twins]).astype(np.uint8),
        "dataset_digests": np.array([f"{name} {digest}" for name, digest in digests.items()]),
    }


def _facts(world: World, federation: Federation, states: States) -> dict[str, Any]:
    """Return what the provenance says beside the environment: ranks, placement, sizes, device."""
    return {
        "mpi": world.describe(describe(states.device)),
        "rank_of_client": states.hosts.tolist(),
        "client_costs": list(federation.costs),
        "parameters": states.num_parameters(),
        "shared_parameters": states.size,
        "model_flops": COUNTED if _counted(federation) else BY_FORMULA,
        "torch_threads": torch.get_num_threads(),
        "device": describe(states.device),
    }


def _counted(federation: Federation) -> bool:
    return any(is_counted(flops) for flops in federation.flops.values())


def _digests(job: Job, federation: Federation) -> dict[str, str]:
    """Return the content digest of every dataset by name."""
    return {raw.name: digest_of(raw, job.case.dataset, job.source) for raw in federation.raws}


def _announce(
    job: Job,
    hooks: Hooks,
    world: World,
    table: PartitionTable,
    opening: Opening,
    observer: Observer,
    facts: dict[str, Any],
) -> None:
    workers = world.workers(shared=job.case.shared)
    ranks = [rank for rank in facts["mpi"]["ranks"] if rank["rank"] in workers]  # another server sleeps
    for line in shared_cores(ranks, job.case.threads) + shared_devices(ranks):
        observer.note(f"warning: {line}")
    idle = sorted(set(workers) - set(facts["rank_of_client"]))
    if idle:
        server = "" if job.case.shared else " and a server"
        observer.note(
            f"warning: {world.size} ranks for {len(facts['rank_of_client'])} clients{server}: "
            f"ranks {', '.join(map(str, idle))} are idle"
        )
    one_step = job.case.local_epochs == 1 and table.sizes[:, 0].max() <= job.case.batch_size
    participants = hooks.participants(job.case.seed, 0, len(table.sizes), job.case.participation)
    if remark := hooks.remark(len(participants), bool(one_step)):
        observer.note(f"{job.algorithm.name}: {remark}")
    if (population := table.partition.population) is not None:
        observer.note(
            f"each round samples {len(table.sizes):,} of {population.size:,} clients; a row stands for a "
            "place of the round, and client_id in the record says who had it"
        )
    if facts["model_flops"] == COUNTED:
        observer.note(f"model FLOPs are {COUNTED}: {job.case.model.name} brings no formula for them")
    for member in job.source.members(job.case.dataset.name):
        if refused := job.source.refused_of(member):
            observer.note(
                f"{member}: {len(refused)} rows of its file are left out; partition/refused names them"
            )
    if opening.notice:
        observer.note(opening.notice)


def _loop(
    rounds: Rounds, run_folder: RunFolder, stop: StopRequest, observer: Observer, first_round: int
) -> None:
    """Run the rounds that are left, recording each; write checkpoints when they are due."""
    case, saved = rounds.case, time.monotonic()
    rounds.meter.start_clock()
    for number in range(first_round, case.rounds):
        last = number + 1 == case.rounds and case.checkpoints == "kept"
        due = time.monotonic() - saved >= case.checkpoint_seconds or last
        try:
            plan, report = rounds.run(number, stop=stop, checkpoint=due)
        except (Diverged, TooFewLeft) as error:
            run_folder.finish("diverged" if isinstance(error, Diverged) else "failed", str(error))
            raise
        with rounds.meter.phase("record" if rounds.world.is_root or plan.checkpoint else "wait"):
            if report is not None:
                run_folder.write(report)
                observer.round(report)
                for line in report.notes:
                    observer.note(line)
            if plan.checkpoint:
                run_folder.checkpoint(number + 1, rounds)
                saved = time.monotonic()
        if plan.stop and number + 1 < case.rounds:
            reason = f"stopped by a signal after round {number + 1} of {case.rounds}"
            run_folder.finish("interrupted", reason)
            raise Interrupted(f"{reason}; run the same command with --resume to continue")
    run_folder.finish("complete")
