"""A model that all ranks read, and slots for their updates, in memory of rank 0 (one-sided MPI)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from fedmpi.comm.world import World

Row = npt.NDArray[np.float32]
Words = npt.NDArray[np.int64]

_NAP_S = 0.001
"""Seconds between two looks. MPI between nodes moves only while rank 0 calls it."""

_EMPTY, _OVER = -1, -1

_HEAD = 56
"""Bytes of a slot before its update: ticket, client, version, exponent, whether it is finite; the version
that its rank trains from; whether that asks to stop."""


@dataclass(frozen=True)
class HandedIn:
    """An update as it came.

    Attributes
    ----------
    ticket, rank : int
        Its place in the order of all updates, and where it comes from.
    client, version : int
        Who made it, and from which model.
    exponent : int
        Bound of the update times the client's weight (`fedmpi.comm.reductions`).
    finite : bool
    update : float32 [size]
    """

    ticket: int
    rank: int
    client: int
    version: int
    exponent: int
    finite: bool
    update: Row


class Board:
    """Rank 0 publishes models and takes updates; nobody waits for another rank than rank 0.

    Every rank looks at everything once while all are in this constructor (a collective call): with MPICH the
    first access of a rank waits until rank 0 is in MPI.

    Parameters
    ----------
    world : World
    size, clients : int
        Elements of a model and of an update; number of clients.
    """

    def __init__(self, world: World, size: int, clients: int) -> None:
        self._start = 8 * (1 + clients)
        self._comm, self._rank, self._size = world.comm, world.rank, size
        self._slot = _HEAD + 8 * -(-size // 2)
        model, slots = self._start + 4 * size, 8 + self._slot * (world.size - 1)
        self._windows = [self._window(each) for each in (model, slots)]
        if world.is_root:
            for window in self._windows:
                window.Lock(0, MPI.LOCK_EXCLUSIVE)
                _memory(window)[:] = 0
                if window is self._windows[1]:
                    for rank in range(1, world.size):
                        self._head(_memory(window), rank)[0] = _EMPTY
                window.Unlock(0)
        world.collectives.wait_for_all()
        if not world.is_root:
            self.read()
            self._is_free()
        world.collectives.wait_for_all()

    def _window(self, nbytes: int) -> MPI.Win:
        info = MPI.Info.Create()
        info.Set("same_disp_unit", "true")
        window = MPI.Win.Allocate(nbytes if self._rank == 0 else 0, 1, info, self._comm)
        info.Free()
        return window

    def close(self) -> None:
        """Free the windows (a collective call)."""
        for window in self._windows:
            window.Free()

    def _head(self, memory: npt.NDArray[np.uint8], rank: int) -> Words:
        start = 8 + (rank - 1) * self._slot
        return memory[start : start + _HEAD].view(np.int64)

    def publish(self, version: int, model: Row, used: Words) -> None:
        """Show a model to all, and how many updates of each client are used, int64 [clients]; on rank 0."""
        window = self._windows[0]
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        memory = _memory(window)
        memory[self._start :].view(np.float32)[:] = model
        memory[: self._start].view(np.int64)[:] = [version, *used.tolist()]
        window.Unlock(0)

    def end(self) -> None:
        """Tell all that there will be no further model; on rank 0."""
        window = self._windows[0]
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        _memory(window)[:8].view(np.int64)[0] = _OVER
        window.Unlock(0)

    def used(self) -> Words | None:
        """Return how many updates of each client are used, int64 [clients]; None at the end."""
        found = self._got(self._start)
        return None if found is None else found.view(np.int64)[1:]

    def read(self) -> tuple[int, Row] | None:
        """Return the newest model's number, and the model; None at the end."""
        found = self._got(self._start + 4 * self._size)
        if found is None:
            return None
        return int(found[:8].view(np.int64)[0]), found[self._start :].view(np.float32)

    def _got(self, nbytes: int) -> npt.NDArray[np.uint8] | None:
        """Return the first bytes of what is published; None at the end."""
        found, window = np.empty(nbytes, np.uint8), self._windows[0]
        window.Lock(0, MPI.LOCK_SHARED)
        window.Get(found, 0)
        window.Unlock(0)
        return None if int(found[:8].view(np.int64)[0]) == _OVER else found

    def begin(self, version: int) -> None:
        """Have rank 0 know that an update of this model will come."""
        self._say(version, 40)

    def ask_to_stop(self) -> None:
        """Have rank 0 know that this rank got a signal."""
        self._say(1, 48)

    def _say(self, word: int, place: int) -> None:
        window = self._windows[1]
        window.Lock(0, MPI.LOCK_SHARED)
        window.Put(np.array([word], np.int64), 0, 8 + (self._rank - 1) * self._slot + place)
        window.Unlock(0)

    def asked(self) -> bool:
        """Return whether a rank asks to stop; on rank 0."""
        window = self._windows[1]
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        found = any(self._head(_memory(window), rank)[6] for rank in range(1, self._comm.size))
        window.Unlock(0)
        return found

    def oldest(self) -> int:
        """Return the oldest model of which updates will come; on rank 0."""
        window = self._windows[1]
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        heads = [self._head(_memory(window), rank).tolist() for rank in range(1, self._comm.size)]
        window.Unlock(0)
        handed_in = [head[2] for head in heads if head[0] != _EMPTY]
        return int(min([*handed_in, *(head[5] for head in heads)]))

    def _is_free(self) -> bool:
        """Return whether rank 0 has taken what this rank handed in last."""
        head, window = np.empty(1, np.int64), self._windows[1]
        window.Lock(0, MPI.LOCK_SHARED)
        window.Get(head, 0, 8 + (self._rank - 1) * self._slot)
        window.Unlock(0)
        return int(head[0]) == _EMPTY

    def hand_in(self, client: int, version: int, exponent: int, finite: bool, update: Row) -> None:
        """Give rank 0 an update; waits while it has not taken the one before."""
        while not self._is_free():
            if self.used() is None:
                return
            time.sleep(_NAP_S)
        ticket, one, window = np.empty(1, np.int64), np.ones(1, np.int64), self._windows[1]
        head = np.array([0, client, version, exponent, int(finite)], np.int64)
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        window.Fetch_and_op(one, ticket, 0, 0, MPI.SUM)
        window.Flush(0)
        head[0] = ticket[0]
        start = 8 + (self._rank - 1) * self._slot
        window.Put(update, 0, start + _HEAD)
        window.Put(head, 0, start)
        window.Unlock(0)

    def take(self) -> list[HandedIn]:
        """Return the updates that came since, by ticket; on rank 0."""
        found, window = list[HandedIn](), self._windows[1]
        self._comm.Iprobe()
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        memory = _memory(window)
        for rank in range(1, self._comm.size):
            head = self._head(memory, rank)
            if head[0] != _EMPTY:
                start = 8 + (rank - 1) * self._slot + _HEAD
                update = memory[start : start + 4 * self._size].view(np.float32).copy()
                ticket, client, version, exponent, finite = head[:5].tolist()
                found.append(HandedIn(ticket, rank, client, version, exponent, bool(finite), update))
                head[0] = _EMPTY
        window.Unlock(0)
        if not found:
            time.sleep(_NAP_S)
        return sorted(found, key=lambda each: each.ticket)


def _memory(window: MPI.Win) -> npt.NDArray[np.uint8]:
    """Return rank 0's memory of a window."""
    memory: Any = window.tomemory()
    return np.frombuffer(memory, np.uint8)
