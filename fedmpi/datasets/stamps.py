"""Digests of large files, computed once on each machine for each state of a file.

That a file agreed with its digest is noted by an empty file in a folder of the user's among the temporary
ones: it belongs to the machine, not to the data, which several machines may share or nobody may write. Its
name is a digest of all that was compared, so that notes are made and looked for without any lock.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

_SETTLED_NS = 2_000_000_000
"""A file that changed so lately may change again without another time stamp: such a state is not noted."""


def agree(digests: Mapping[Path, str]) -> bool:
    """Return whether files have these SHA-256, in hexadecimal; a file that cannot be read has not."""
    notes = _folder()
    return all(_agrees(path, digest, notes) for path, digest in digests.items())


def _agrees(path: Path, digest: str, notes: Path | None) -> bool:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # a FIFO does not hold it up
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode):
                return False
            note = None if notes is None else notes / _name(found, digest)
            if note is not None and note.exists():
                return True
            if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                return False
            settled = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _SETTLED_NS
            if note is not None and settled and _stamp(found) == _stamp(os.fstat(stream.fileno())):
                with suppress(OSError):
                    note.touch()
            return True
    except OSError:
        return False


def _stamp(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _name(state: os.stat_result, digest: str) -> str:
    """Return the name of the note that the file in this state has this digest."""
    return hashlib.sha256(f"{_boot()} {_stamp(state)} {digest}".encode()).hexdigest()


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _folder() -> Path | None:
    """Return a folder that nobody else can write."""
    folder = Path(tempfile.gettempdir()) / f"fedmpi-checked-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    alone = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if alone else None
