"""A run folder that rank 0 has locked: every write first checks that the lock is still held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from fedmpi.comm.world import World
from fedmpi.errors import FedmpiError, RunFailed
from fedmpi.programs.position import Position
from fedmpi.store import disk, events, runfile
from fedmpi.store.lock import FolderLock
from fedmpi.store.record import RunRecord


class LockedFolder:
    """A run folder, locked, and its record.

    A process that was stopped for long may have lost the lock to another one. So it checks the lock before
    each write. Once the lock is lost it writes nothing more, also not when it closes the record.

    Raises
    ------
    BadInput
        On entry: another live process holds the folder, or it cannot be written.
    """

    def __init__(self, folder: Path, world: World, where: Position) -> None:
        self.path, self._world, self._where = folder, world, where
        self.lock = FolderLock(folder)
        self.record: RunRecord | None = None
        """The record that was made or opened in the folder."""
        self.given_up = False
        """Whether a failure in `writing`, which has been reported, ends the job."""

    def __enter__(self) -> Self:
        self.lock.__enter__()
        if self.lock.former_may_live:  # it may be stopped between its check and its write
            for name in (events.NAME, runfile.NAME):
                disk.detach(self.path / name)
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._close()
        finally:
            self.lock.__exit__(*error)

    @contextmanager
    def writing(self) -> Iterator[RunRecord]:
        """Return a context in which the folder may be written; what fails in it ends the whole job."""
        assert self.record is not None
        self._where.writing = True
        try:
            self.confirm()
            yield self.record
        except FedmpiError as error:
            self.given_up = True
            self._close(str(error))
            self._world.fail(error)
        finally:
            self._where.writing = False

    def confirm(self) -> None:
        """Raise RunFailed unless the folder is still this process's."""
        if self.lock.lost():
            raise taken_over(self.path)

    def _close(self, failure: str = "") -> None:
        """Close the record, as failed if there is a reason; nothing is written where the lock is lost."""
        if self.record is None:
            return
        if self.lock.lost():
            self.record.silence()
        if failure:
            self.record.finish("failed", failure)
        self.record.close()


def taken_over(folder: Path) -> RunFailed:
    """Return the error of a process whose folder is another's now."""
    return RunFailed(
        f"{folder} was taken over by another process while this one stood still, "
        "or its lock was removed; this one stops and writes nothing more there"
    )
