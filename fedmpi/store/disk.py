"""Writes that can fail: space reserved ahead, one-line errors, durable renames."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from fedmpi.errors import RunFailed

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_SUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def open_plain(path: Path) -> BinaryIO:
    """Open a file of a run for reading: never a link, which may lead anywhere, nor a pipe, which may block.

    Raises
    ------
    OSError
        There is none, it cannot be read, or it is no plain file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, and links are not followed", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return os.fdopen(descriptor, "rb")


def write_whole(target: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file so that there is either all of it, or what was there before; folders are made.

    What is no plain file, such as a pipe, is written to as it is. A `durable` file is so after a crash of the
    machine, too.

    Raises
    ------
    OSError
        It cannot be written.
    """
    whole = content.encode() if isinstance(content, str) else content
    target = target.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(whole)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{secrets.token_hex(4)}.tmp")
    try:
        fresh.write_bytes(whole)
        if target.exists():
            shutil.copymode(target, fresh)
        if durable:
            sync(fresh)
        os.replace(fresh, target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(target)) from None


def try_writing(folder: Path) -> None:
    """Find out whether files can be made in a folder, or in the nearest one above that is there.

    Raises
    ------
    OSError
        They cannot; it names that folder.
    """
    present = folder
    while not present.exists() and present != present.parent:
        present = present.parent
    try:
        with tempfile.TemporaryFile(dir=present):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(present)) from None


def system_locks(folder: Path) -> dict[str, str]:
    """Return for each of the system's two kinds of file lock whether a folder has it, or why not.

    fedmpi needs neither; other programs on the same files may.
    """
    answers = {}
    for name, take in (("flock", fcntl.flock), ("fcntl", fcntl.lockf)):
        answers[name] = "yes"
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                try:
                    take(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    answers[name] = f"no: {error.strerror}"
        except OSError as error:
            answers[name] = f"cannot be tried: {error.strerror}"
    return answers


class Placed:
    """A file that is open for writing, and the name that it must keep meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = _identity(path)

    def check(self) -> None:
        """Raise OSError if the file was removed or replaced, since later writes would be lost."""
        if self._identity is None or _identity(self._path) != self._identity:
            raise OSError(
                f"{self._path.name} was removed or replaced by somebody while the run wrote it; fedmpi "
                f"records repair {quote(str(self._path.parent))} recovers what can be, --resume goes on"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def reserve(path: Path, size: int) -> None:
    """Give every byte of the file up to `size` its place on disk, so that rewriting cannot run out.

    File systems that cannot reserve (some network and copy-on-write ones) are left as they are.
    """
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise


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


def detach(path: Path) -> None:
    """Put a copy in a file's place, so that a process that has the old one open does not reach the new.

    Where there is no room for a copy, or no such file, nothing happens.
    """
    copy = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    with suppress(OSError):
        try:
            shutil.copyfile(path, copy)
            sync(copy)
            os.replace(copy, path)
        finally:
            copy.unlink(missing_ok=True)


def silence(descriptor: int) -> None:
    """Discard all later writes through an open file's descriptor."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
