"""Removes shared-memory segments of killed ranks (imports without mpi4py)."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_SEGMENT = "mpich_shm_"
_MARGIN_S = 30.0
"""Ranks of one step start together: what is so much older than this process is not theirs."""


def remove_leftovers(folder: Path = SHARED_MEMORY) -> None:
    """Remove MPICH's segments of this user that are older than this process and that nobody has mapped.

    Ranks that are killed leave the segment of their node, 1 MB for each. A segment of this very step's
    name goes whoever has it mapped: MPICH names segments after Slurm's job and step, ``PMI_JOBID``, and a
    job that is queued again counts its steps from 0 anew, so after a kill its next attempt on the node
    would attach to the dead one's segment and abort with "Out of memory".

    A process that has a segment mapped keeps it when its name is removed, so a rank that cannot be seen
    from here (in another container) is not disturbed.
    """
    old = _older(folder, _process_start() - _MARGIN_S)
    if not old:
        return
    step = os.environ.get("PMI_JOBID")
    mine = f"{_SEGMENT}{_hash(step):x}_" if step else None
    mapped = _mapped()
    for path, inode in old.items():
        if inode not in mapped or (mine is not None and path.name.startswith(mine)):
            with suppress(OSError):  # another rank was faster
                path.unlink()


def _older(folder: Path, when: float) -> dict[Path, int]:
    """Return this user's segments that were last changed before a time, with their inodes."""
    return {path: state.st_ino for path, state in segments(folder).items() if state.st_mtime < when}


def segments(folder: Path) -> dict[Path, os.stat_result]:
    """Return MPICH's segments of this user, with what the system says of each."""
    found = {}
    for path in folder.glob(f"{_SEGMENT}*"):
        with suppress(OSError):
            state = path.lstat()
            if stat.S_ISREG(state.st_mode) and state.st_uid == os.getuid():
                found[path] = state
    return found


def _mapped() -> set[int]:
    """Return the inodes of segments that processes have mapped.

    Those of other users cannot be looked into, nor can they map this user's segments.
    """
    found = set()
    for path in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            for line in path.read_text(errors="replace").splitlines():
                if _SEGMENT in line:
                    found.add(int(line.split()[4]))
    return found


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
