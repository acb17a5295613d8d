"""The folder lock: one live run per folder, and a killed one is recognised as such."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from fedmpi.config.documents import load_json
from fedmpi.errors import BadInput
from fedmpi.store import disk

NAME = "lock"
_BEAT_SECONDS = 5.0
_STALE_SECONDS = 120.0
_GUARD_SECONDS = 10.0
"""A takeover takes microseconds; a guard older than this belongs to a taker that was killed."""
_TRIES = 5
_WAIT_SECONDS = 0.1
_TURN = ".fedmpi-lock"

State = Literal["live", "stale", "free"]


class _Owner(BaseModel):
    """State of the process that holds a lock."""

    model_config = ConfigDict(strict=True)

    job: str = ""
    restart: str = "0"
    host: str = "?"
    pid: int = Field(ge=1, lt=2**31)
    started: str | None
    place: str = ""
    token: str = ""


class FolderLock:
    """Holds `folder` for this process while the context is open; no file system needs to grant locks for it.

    Parameters
    ----------
    folder : Path
        Made on entry.
    name : str, optional
        Of the lock's file.
    refusal : str, optional
        What to say where another live process holds the folder; by default which one.
    wait : bool, optional
        Wait for the end of another live process in place of refusing.

    Raises
    ------
    BadInput
        On entry: another live process holds the folder, or it cannot be written.
    """

    def __init__(self, folder: Path, name: str = NAME, refusal: str = "", *, wait: bool = False) -> None:
        self.path = folder / name
        self._refusal, self._wait = refusal, wait
        self.token = secrets.token_hex(8)
        self.text = json.dumps(_this_process(self.token).model_dump())
        self._stop = threading.Event()
        self._beat: threading.Thread | None = None
        self._lost = False
        self.former_may_live = False
        """Whether the folder was taken over from a process that cannot be seen from here to be dead."""

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while not self._acquire():
                if not self._wait:
                    raise BadInput(self._refusal or _in_use(self.path))
                time.sleep(_WAIT_SECONDS)
        except OSError as error:
            message = f"{self.path.parent}: cannot write there ({error.strerror}); choose another folder"
            raise BadInput(message) from error
        self._beat = threading.Thread(target=self._keep_beating, name="folder-lock", daemon=True)
        self._beat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._beat is not None:
            self._beat.join()
        with suppress(OSError):
            if not self.lost():
                self.path.unlink()

    def lost(self) -> bool:
        """Look whether the lock is another process's, or gone; once it is, the folder stays lost.

        That happens to a process that stood still for long, as one that was stopped.
        """
        self._lost = self._lost or not is_held(self.path, self.text)
        return self._lost

    def _acquire(self) -> bool:
        for _ in range(_TRIES):
            if _write_new(self.path, self.text):
                return True
            if _state(self.path) == "live":
                return False
            if self._take_over():
                return True
            time.sleep(0.05)
        return False

    def _take_over(self) -> bool:
        """Replace a dead process's lock; a guard file lets one taker at a time look and replace."""
        guard = self.path.with_name(f"{self.path.name}.takeover")
        if not _write_new(guard, ""):
            if _age(guard) > _GUARD_SECONDS:
                guard.unlink(missing_ok=True)
            return False
        fresh = self.path.with_name(f"{self.path.name}.{self.token}")
        try:
            if _state(self.path) != "stale":
                return False
            former = _read(self.path)
            fresh.write_text(self.text)
            os.replace(fresh, self.path)
            self.former_may_live = former is None or former.place != _place()
            return True
        finally:
            guard.unlink(missing_ok=True)
            fresh.unlink(missing_ok=True)

    def _keep_beating(self) -> None:
        while not self._stop.wait(_BEAT_SECONDS):
            if self.lost():
                return
            with suppress(OSError):
                os.utime(self.path)


def in_turn(folder: Path, refusal: str = "") -> FolderLock:
    """Return a lock for what reads a file of a folder, which is no run's, and then replaces it.

    Parameters
    ----------
    folder : Path
    refusal : str
        What to say where another process has its turn; blank: wait for it.
    """
    return FolderLock(folder, _TURN, refusal, wait=not refusal)


@contextmanager
def temporary_folder(root: Path, prefix: str) -> Iterator[Path]:
    """Make a folder for as long as the context is open; those that killed processes left are removed first.

    Parameters
    ----------
    root : Path
        Folder that it is made in.
    prefix : str
        Of its name, and of those that may be removed.
    """
    for path in root.glob(f"{prefix}*"):
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid() and path.is_dir() and state(path) == "stale":
                shutil.rmtree(path)
    # An open file that is removed leaves another one behind on NFS, so the folder may stay.
    made = tempfile.TemporaryDirectory(prefix=prefix, dir=root, ignore_cleanup_errors=True)
    with made as folder, FolderLock(Path(folder)):
        yield Path(folder)


def is_held(path: Path, text: str) -> bool:
    """Return whether a lock still has this text."""
    try:
        with disk.open_plain(path) as stream:
            return stream.read(len(text) + 1) == text.encode()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # a file system that does not answer says nothing about the owner
        return error.errno not in (errno.ELOOP, errno.EINVAL)  # a link, a pipe: not its lock


def state(folder: Path) -> State:
    """Return whether a live process holds the folder ("live"), a dead one ("stale") or none ("free")."""
    return _state(folder / NAME)


def _state(path: Path) -> State:
    age = _age(path)
    if age == float("inf"):
        return "free"
    owner = _read(path)
    if owner is None:  # just being written, or by a process that died right then
        return "live" if age < _STALE_SECONDS else "stale"
    if owner.place == _place():
        return "live" if _start_time(owner.pid) == owner.started else "stale"
    job, restart = _this_job()
    if job and owner.job == job and owner.restart != restart:  # this Slurm job before it was queued again
        return "stale"
    return "live" if age < _STALE_SECONDS else "stale"


def refuse_live(folder: Path) -> None:
    """Raise BadInput if a live process holds the folder."""
    if state(folder) == "live":
        raise BadInput(_in_use(folder / NAME))


def _in_use(path: Path) -> str:
    owner = _read(path)
    job = f" (job {owner.job})" if owner and owner.job else ""
    who = f"by pid {owner.pid if owner else '?'} on host {owner.host if owner else '?'}{job}"
    return f"run folder {path.parent} is in use {who}; wait for it or choose another folder"


def _this_process(token: str) -> _Owner:
    (job, restart), pid, host = _this_job(), os.getpid(), socket.gethostname()
    started, place = _start_time(pid), _place()
    return _Owner(job=job, restart=restart, host=host, pid=pid, started=started, place=place, token=token)


def _this_job() -> tuple[str, str]:
    """Return number and restarts of the Slurm job that this process belongs to; blank without one."""
    return os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURM_RESTART_COUNT", "0")


def _place() -> str:
    """Return boot and PID namespace; processes for which both are equal see each other's /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"unknown {socket.gethostname()}"


def _start_time(pid: int) -> str | None:
    """Return the start time of a process in clock ticks since boot; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _age(path: Path) -> float:
    """Return the seconds since the file's last change; infinite if there is no such file."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _read(path: Path) -> _Owner | None:
    """Return the owner that a lock names; None where none can be read."""
    try:
        return _Owner.model_validate(load_json(path, "lock"))
    except ValueError:
        return None


def _write_new(path: Path, text: str) -> bool:
    """Write the file if it does not exist; return whether it was written."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return True
