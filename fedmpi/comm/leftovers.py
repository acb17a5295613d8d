"""What an earlier life of this job left in shared memory when it was killed (imports without mpi4py)."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")
_MARGIN_S = 30.0
"""Ranks of one step start together: what is so much older than this process is not theirs."""


def remove_leftovers(folder: Path = _SHARED_MEMORY) -> None:
    """Remove the shared memory of a step of this very name that is older than this process.

    MPICH names a node's segment after Slurm's job and step, ``PMI_JOBID``. A job that is queued again
    counts its steps from 0 anew, so after a kill its next life on the node would attach to the dead
    one's segment and abort with "Out of memory".
    """
    name = os.environ.get("PMI_JOBID")
    if not name:
        return
    oldest = _process_start() - _MARGIN_S
    for path in folder.glob(f"mpich_shm_{_hash(name):x}_*"):
        with suppress(OSError):  # another rank was faster, or it is another user's
            if path.stat().st_mtime < oldest:
                path.unlink()


def _hash(text: str) -> int:
    """Return the FNV-1a hash of 32 bits."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _process_start() -> float:
    """Return when this process was started, in seconds since the epoch (Linux)."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    running_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - running_s
