"""The settings of a launch that decide how ranks wait and compute: what is set, and what would be better.

Where more ranks than cores wait by spinning, or threads wait that way beside ranks, a round takes up to a
hundred times as long; docs/clusters.md has the measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any


def advice(environment: Mapping[str, str], library: str, ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line of advice for each setting of a launch that costs time.

    Parameters
    ----------
    environment : mapping
        The variables of a rank, as it is about to compute.
    library : str
        Name and version of the MPI library; empty where MPI was not started.
    ranks : sequence of mapping
        `rank`, `host` and `cores` of each, as `World.describe` has them; may be empty.
    """
    threads = int(environment.get("OMP_NUM_THREADS", "0") or 0)
    hosts = crowded(ranks, max(threads, 1))
    lines = shared_cores(ranks, max(threads, 1))
    if threads != 1 and len(ranks) > 1:
        lines.append("OMP_NUM_THREADS: set 1; more threads a rank only by `threads` of the suite")
    if environment.get("OMP_WAIT_POLICY", "").upper() != "PASSIVE":
        lines.append("OMP_WAIT_POLICY: set PASSIVE, or threads that wait keep cores from those that compute")
    if "MPICH" in library and hosts and environment.get("MPIR_CVAR_ENABLE_HEAVY_YIELD") != "1":
        lines.append(f"MPIR_CVAR_ENABLE_HEAVY_YIELD: set 1, since ranks outnumber cores on {hosts[0]}")
    if "Open MPI" in library:
        lines += _open_mpi(environment, ranks)
    return lines


def _open_mpi(environment: Mapping[str, str], ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    if environment.get("OMPI_MCA_mpi_yield_when_idle") != "1":
        lines.append("OMPI_MCA_mpi_yield_when_idle: set 1, or ranks that wait spin")
    if len({rank["host"] for rank in ranks}) <= 1 and "OMPI_MCA_btl" not in environment:
        lines.append("OMPI_MCA_btl: set self,sm,tcp on one machine; Open MPI then starts a second faster")
    return lines


def shared_cores(ranks: Sequence[Mapping[str, Any]], threads: int) -> list[str]:
    """Return a line per host on which ranks must share cores: fewer cores in all than ranks times threads."""
    lines = []
    for host in crowded(ranks, threads):
        number = sum(rank["host"] == host for rank in ranks)
        cores = {core for rank in ranks if rank["host"] == host for core in rank["cores"]}
        lines.append(
            f"{host}: {number} ranks of {threads} thread{'s' * (threads > 1)} share {len(cores)} "
            f"core{'s' * (len(cores) > 1)}: the scheduler is measured, not fedmpi; bind each rank to its own"
        )
    return lines


def shared_devices(ranks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line per GPU that several ranks compute on."""
    users: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rank in ranks:
        if rank.get("device", "cpu") != "cpu":
            users[rank["host"], rank["device"]].append(rank["rank"])
    return [
        f"{host}: ranks {', '.join(map(str, numbers))} share {device}; start one rank per GPU, and the server"
        for (host, device), numbers in users.items()
        if len(numbers) > 1
    ]


def crowded(ranks: Sequence[Mapping[str, Any]], threads: int) -> list[str]:
    """Return the hosts on which some ranks have fewer cores in all than they have threads."""
    groups: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
    cores: dict[str, set[int]] = defaultdict(set)
    count: dict[str, int] = defaultdict(int)
    for rank in ranks:
        groups[rank["host"], tuple(rank["cores"])] += 1
        cores[rank["host"]] |= set(rank["cores"])
        count[rank["host"]] += 1
    found = {host for (host, bound), number in groups.items() if number * threads > len(bound)}
    found |= {host for host in count if count[host] * threads > len(cores[host])}
    return sorted(found)
