"""What a run records of itself before its first round, and what of it is unusual, as lines for the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.case.schema import Case
from fedmpi.client.constant import by_client
from fedmpi.client.counted import is_counted
from fedmpi.client.federation import Federation
from fedmpi.client.states import States
from fedmpi.comm.devices import describe
from fedmpi.comm.settings import shared_cores, shared_devices
from fedmpi.comm.world import World
from fedmpi.datasets.loading import digest_of
from fedmpi.datasets.source import DataSource
from fedmpi.exchange import links, schedule
from fedmpi.exchange.dropouts import Dropouts
from fedmpi.exchange.meter import Energy
from fedmpi.heterogeneity.leakage import leakage
from fedmpi.metrics.metric import Metric
from fedmpi.models.counted import BY_FORMULA, COUNTED
from fedmpi.partition.table import PartitionTable
from fedmpi.programs.hooks import Hooks
from fedmpi.runs import consensus
from fedmpi.store.schema import CLIENT_ID, Field, secure_fields


@dataclass(frozen=True)
class Contents:
    """What a record begins with beside the configuration.

    Attributes
    ----------
    clients : tuple of str
    partition : mapping
        Arrays that say who holds which data.
    extra : tuple of Field
        Fields of the record beyond the common ones.
    metrics : tuple of Metric
        By which the run is judged; the headline first.
    """

    clients: tuple[str, ...]
    partition: Mapping[str, npt.NDArray[Any]]
    extra: tuple[Field, ...]
    metrics: tuple[Metric, ...]


def contents_of(
    case: Case,
    hooks: Hooks,
    federation: Federation,
    table: PartitionTable,
    digests: Mapping[str, str],
    energy: Energy,
) -> Contents:
    """Return what the record begins with."""
    added = (
        *hooks.fields(),
        *federation.task.fields,
        *links.fields_of(case, hooks),
        *schedule.fields_of(case),
        *consensus.fields_of(case, federation.task),
        *(() if federation.partition.population is None else (CLIENT_ID,)),
        *Dropouts(case.reduction.dropouts, case.seed, federation.num_clients).fields,
        *(secure_fields() if case.reduction.secret else ()),
        *energy.fields,
    )
    partition = _stored_partition(federation, table, digests)
    return Contents(table.clients, partition, added, federation.task.metrics)


def _stored_partition(
    federation: Federation, table: PartitionTable, digests: Mapping[str, str]
) -> dict[str, npt.NDArray[Any]]:
    """Return what the record holds of the partition: who has what, twins of test graphs, data digests."""
    twins = leakage(federation.partition.trained, federation.raws).clients[: federation.num_clients]
    arrays = table.arrays()
    if refused := federation.raws[0].refused:
        arrays["refused"] = np.array(refused)
    if (population := federation.partition.population) is not None:
        arrays |= {"population": np.array(population.size), "pool_index": population.pool}
    if (public := federation.partition.public) is not None:
        arrays["public_index"] = public
    return {
        **arrays,
        **federation.task.partition(),
        "test_twin_own": np.concatenate([client.own for client in twins]).astype(np.uint8),
        "test_twin_other": np.concatenate([client.other for client in twins]).astype(np.uint8),
        "dataset_digests": np.array([f"{name} {digest}" for name, digest in digests.items()]),
    }


def facts_of(
    case: Case, world: World, federation: Federation, states: States, hooks: Hooks, table: PartitionTable
) -> dict[str, Any]:
    """Return what the provenance says beside the environment: ranks, placement, sizes, device."""
    counted = any(is_counted(flops) for flops in federation.flops.values())
    of_root: dict[str, Any] = {"constants": {}, "remarks": []}
    if world.is_root:
        # No part of the results: they are the same, whatever they are held against.
        of_root["constants"] = by_client(case, federation.task, federation.raws, federation.partition)
        of_root["remarks"] = _remarks_of(case, hooks, table)
    return {
        "mpi": world.describe(describe(states.device)),
        "rank_of_client": states.hosts.tolist(),
        "client_costs": list(federation.costs),
        "parameters": states.num_parameters(),
        "shared_parameters": states.size,
        "communicates": hooks.communicates,
        "model_flops": COUNTED if counted else BY_FORMULA,
        "torch_threads": torch.get_num_threads(),
        "device": describe(states.device),
        **of_root,
    }


def digests_of(case: Case, source: DataSource, federation: Federation) -> dict[str, str]:
    """Return the content digest of every dataset by name."""
    return {raw.name: digest_of(raw, case.dataset, source) for raw in federation.raws}


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
            yield f"{member}: left out of its file: {len(refused)}; partition/refused names them"
        yield from (f"{member}: {text}" for text in source.remarks_of(member))
    if notice:
        yield notice


def _remarks_of(case: Case, hooks: Hooks, table: PartitionTable) -> list[str]:
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
            + (f"rank {idle[0]} is idle" if len(idle) == 1 else f"ranks {', '.join(map(str, idle))} are idle")
        )
