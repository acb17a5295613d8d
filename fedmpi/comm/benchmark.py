"""The exchanges of a round by mpi4py's lower-case calls, which pickle: what the collectives compete with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Pickled:
    """Arrays as pickled Python objects between rank 0 and the others, in the plainest way."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm

    def send_to_all(self, array: Array) -> Array:
        """Send rank 0's array to each rank in turn; return it on every rank."""
        if self._comm.rank == 0:
            for rank in range(1, self._comm.size):
                self._comm.send(array, dest=rank)
            return array
        return self._comm.recv(source=0)  # type: ignore[no-any-return]

    def send_to_each(self, parts: Sequence[Array]) -> Array:
        """Send part `rank` of rank 0's sequence to each rank in turn; return this rank's."""
        if self._comm.rank == 0:
            for rank in range(1, self._comm.size):
                self._comm.send(parts[rank], dest=rank)
            return parts[0]
        return self._comm.recv(source=0)  # type: ignore[no-any-return]

    def gather(self, array: Array) -> list[Array] | None:
        """Return every rank's array at rank 0, None elsewhere."""
        return self._comm.gather(array, root=0)


def line_up(comm: MPI.Intracomm) -> None:
    """Return when every rank is here, without sleeping: the start of a timed exchange."""
    comm.Barrier()


def slowest(comm: MPI.Intracomm, seconds: Floats) -> Floats:
    """Return the largest value over ranks, element by element, on every rank."""
    largest = np.empty_like(seconds)
    comm.Allreduce(seconds, largest, op=MPI.MAX)
    return largest
