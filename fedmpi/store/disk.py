"""What the disk can refuse: space reserved ahead, failures told in one line, durable renames."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fedmpi.errors import RunFailed

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_SUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def reserve(path: Path, size: int) -> None:
    """Give every byte of the file up to `size` its place on disk, so that rewriting cannot run out.

    File systems that cannot reserve (some network and copy-on-write ones) are left as they are.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
    finally:
        os.close(descriptor)


def require(path: Path, size: int) -> None:
    """Raise OSError (no space left) unless `size` bytes fit beside `path`; HDF5 fails badly midway."""
    left = os.statvfs(path.parent)
    if left.f_bavail * left.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def failure(path: Path, error: OSError | RuntimeError) -> RunFailed:
    """Return the one-line error for a write that the system (or HDF5, in its text) refused."""
    code = error.errno if isinstance(error, OSError) else None
    text = str(error)
    if code in _FULL or any(f"errno = {number}," in text for number in _FULL):
        return RunFailed(f"no space left on device for {path}; free some and continue with --resume")
    return RunFailed(f"cannot write {path}: {text}")


def sync(path: Path) -> None:
    """Return when the file's content, or the folder's names, would survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
