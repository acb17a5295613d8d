"""What a run records of itself before its first round: fields, partition, placement, digests of data."""

from __future__ import annotations

from collections.abc import Mapping
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
from fedmpi.comm.world import World
from fedmpi.datasets.loading import digest_of
from fedmpi.datasets.source import DataSource
from fedmpi.exchange import links
from fedmpi.exchange.dropouts import Dropouts
from fedmpi.heterogeneity.leakage import leakage
from fedmpi.models.counted import BY_FORMULA, COUNTED
from fedmpi.partition.table import PartitionTable
from fedmpi.programs.hooks import Hooks
from fedmpi.store.schema import CLIENT_ID, Field, secure_fields


def fields_of(case: Case, hooks: Hooks, federation: Federation) -> tuple[Field, ...]:
    """Return the fields of the record that this case has beside those of all."""
    own = (*links.fields_of(case, hooks), *_place_fields(federation))
    added = _reduction_fields(case, federation.num_clients)
    return (*hooks.fields(), *federation.task.fields, *own, *added)


def _place_fields(federation: Federation) -> tuple[Field, ...]:
    """Return the field that says who had a place, where clients are sampled from a population."""
    return () if federation.partition.population is None else (CLIENT_ID,)


def _reduction_fields(case: Case, num_clients: int) -> tuple[Field, ...]:
    """Return the fields of the record that dropouts and secure sums add."""
    added = Dropouts(case.reduction.dropouts, case.seed, num_clients).fields
    return (*added, *(secure_fields() if case.reduction.secret else ()))


def stored_partition(
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
        **({} if federation.partition.public is None else {"public_index": federation.partition.public}),
        **federation.task.partition(),
        "test_twin_own": np.concatenate([client.own for client in twins]).astype(np.uint8),
        "test_twin_other": np.concatenate([client.other for client in twins]).astype(np.uint8),
        "dataset_digests": np.array([f"{name} {digest}" for name, digest in digests.items()]),
    }


def facts_of(
    case: Case, world: World, federation: Federation, states: States, hooks: Hooks
) -> dict[str, Any]:
    """Return what the provenance says beside the environment: ranks, placement, sizes, device."""
    return {
        "mpi": world.describe(describe(states.device)),
        "rank_of_client": states.hosts.tolist(),
        "client_costs": list(federation.costs),
        "parameters": states.num_parameters(),
        "shared_parameters": states.size,
        "communicates": hooks.communicates,
        "model_flops": COUNTED if _counted(federation) else BY_FORMULA,
        "torch_threads": torch.get_num_threads(),
        "device": describe(states.device),
        # No part of the results: they are the same, whatever they are held against.
        "constants": by_client(case, federation.task, federation.raws, federation.partition)
        if world.is_root
        else {},
    }


def _counted(federation: Federation) -> bool:
    return any(is_counted(flops) for flops in federation.flops.values())


def digests_of(case: Case, source: DataSource, federation: Federation) -> dict[str, str]:
    """Return the content digest of every dataset by name."""
    return {raw.name: digest_of(raw, case.dataset, source) for raw in federation.raws}
