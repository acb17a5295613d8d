"""Rows of consecutive rounds written into datasets of `run.h5` at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from fedmpi.store.events import Round
from fedmpi.store.hdf5 import h5py
from fedmpi.store.schema import Array

HOLD_S = 2.0
"""A round that ends sooner after the last block was written waits, in the log alone, for the next one.

HDF5 takes about as long for a block of rounds as for one (0.1 ms a dataset and flush): 2 to 5 ms, which
rank 0 would take from the clients' cores after every round.
"""


@contextmanager
def hdf5_errors() -> Iterator[None]:
    """Turn the RuntimeError that HDF5 raises for some failed writes into OSError."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(str(error)) from error


class Rows:
    """Writes rows of a dataset, without the cost of h5py's general selections (0.1 ms a row)."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset, self._shape, self._dtype = dataset.id, dataset.shape[1:], dataset.dtype
        self._space = dataset.id.get_space()

    def write(self, first: int, rows: Sequence[Array]) -> Array:
        """Set the rows from `first` on and return them as one array."""
        shape = (len(rows), *self._shape)
        values = np.ascontiguousarray(np.stack(rows), self._dtype)
        if 0 not in shape:
            self._space.select_hyperslab((first, *(0 for _ in self._shape)), shape)
            self._dataset.write(h5py.h5s.create_simple(shape), self._space, values)
        return values

    def blank(self, count: int) -> Array:
        """Return what so many rows hold that were never written."""
        kind = np.dtype(self._dtype).kind
        return np.full((count, *self._shape), np.nan if kind == "f" else 0, self._dtype)


class Block:
    """Consecutive rounds with the same fields, held for a short time."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self._written = float("-inf")

    def fits(self, event: Round) -> bool:
        """Return whether the round can be written together with those held."""
        if not self.rounds:
            return True
        last = self.rounds[-1]
        return event.round == last.round + 1 and event.measurements.keys() == last.measurements.keys()

    def due(self) -> bool:
        """Return whether what is held should be written now."""
        return time.monotonic() - self._written >= HOLD_S

    def take(self) -> list[Round]:
        """Return the rounds held and hold none; a failed write is not tried again."""
        rounds, self.rounds = self.rounds, []
        if rounds:
            self._written = time.monotonic()
        return rounds


def write_rows(
    rows: Mapping[str, Rows], first: int, values: Sequence[Mapping[str, Array]]
) -> dict[str, Array]:
    """Set consecutive rows of several datasets from `first` on; all mappings have the same names.

    Returns
    -------
    dict of arrays
        What stands in these rows now, of all datasets: those that `values` does not name are never written.
    """
    return {
        name: each.write(first, [row[name] for row in values])
        if name in values[0]
        else each.blank(len(values))
        for name, each in rows.items()
    }
