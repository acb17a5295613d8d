"""Lines about what is unusual in a run, which the user reads before its first round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedmpi.case.schema import Case
from fedmpi.comm.settings import shared_cores, shared_devices
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.models.counted import COUNTED
from fedmpi.partition.table import PartitionTable
from fedmpi.programs.hooks import Hooks


def notices_of(
    case: Case, source: DataSource, world: World, table: PartitionTable, facts: Mapping[str, Any], notice: str
) -> Iterator[str]:
    """Yield warnings about ranks and cores, then remarks about algorithm, clients, FLOPs, data and record.

    Parameters
    ----------
    case : Case
    source : DataSource
        Of the case's datasets.
    world : World
    table : PartitionTable
    facts : mapping
        What `facts_of` returned.
    notice : str
        What there is to say of the record; may be empty.
    """
    yield from _about_ranks(case, world.workers(shared=case.shared), facts)
    if len(table.clients) == 1 and facts["communicates"] and table.partition.population is None:
        yield "warning: one client, so nothing is federated; fedmpi options partition shows how to have more"
    yield from (f"{case.algorithm.name}: {text}" for text in facts["remarks"])
    if (population := table.partition.population) is not None:
        yield (
            f"each round samples {len(table.sizes):,} of {population.size:,} clients; a row stands for a "
            "place of the round, and client_id in the record says who had it"
        )
    if facts["model_flops"] == COUNTED:
        yield f"model FLOPs are {COUNTED}: {case.model.name} brings no formula for them"
    for member in source.members(case.dataset.name):
        if refused := source.refused_of(member):
            yield f"{member}: {len(refused)} rows of its file are left out; partition/refused names them"
    if notice:
        yield notice


def remarks_of(case: Case, hooks: Hooks, table: PartitionTable) -> list[str]:
    """Return what the record keeps of an algorithm that is another one in this case."""
    one_step = case.local_epochs == 1 and table.sizes[:, 0].max() <= case.batch_size
    participants = hooks.participants(case.seed, 0, len(table.sizes), case.participation)
    return [text] if (text := hooks.remark(len(participants), bool(one_step))) else []


def _about_ranks(case: Case, workers: Sequence[int], facts: Mapping[str, Any]) -> Iterator[str]:
    ranks = facts["mpi"]["ranks"]
    working = [rank for rank in ranks if rank["rank"] in workers]  # another server sleeps
    for line in shared_cores(working, case.threads) + shared_devices(working):
        yield f"warning: {line}"
    idle = sorted(set(workers) - set(facts["rank_of_client"]))
    if idle:
        server = "" if case.shared else " and a server"
        yield (
            f"warning: {len(ranks)} ranks for {len(facts['rank_of_client'])} clients{server}: "
            f"ranks {', '.join(map(str, idle))} are idle"
        )
