"""The HDF5 file `run.h5`: laid out in full before the first round, then only written in place."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.store import digests, disk, layout
from fedmpi.store.events import Attempt, Event, Round, Start, Status
from fedmpi.store.hdf5 import h5py
from fedmpi.store.schema import Array, Field, axis_sizes, canonical_json, measurement_fields, result_fields

NAME = "run.h5"
_METADATA_BYTES = 1 << 16
"""Room for the headers of one attempt's group; measured 14 KiB."""


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


class RunFile:
    """`run.h5` open for writing. Events are applied to it; all failures are OSError.

    Rounds are written in blocks: one that comes within `HOLD_S` of the last block waits for the
    next event.

    Attributes
    ----------
    extra : tuple of Field
        Fields beyond the schema's.
    first_round : int
        First round (0-based) of the newest attempt.
    sizes : dict of str to int
        Axis lengths of a row in the newest attempt.
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._placed = disk.Placed(path)
        self._file = file
        self.extra = _read_extra(file)
        self._results = {name: Rows(file["rounds"][name]) for name in result_fields(self.extra)}
        self._measured: dict[str, Rows] = {}
        self._result_digests = Rows(file["digests/results"])
        self._held: list[Round] = []
        self._block_written = float("-inf")
        self.first_round = 0
        self._completed = int(file["rounds_completed"][()])
        self._written = 0
        self.sizes: dict[str, int] = {}
        if self.attempts:
            self._bind_attempt(self.attempts - 1)

    @classmethod
    def create(cls, path: Path, start: Start) -> RunFile:
        """Make the file with everything but the attempts; it must not exist."""
        disk.require(path, layout.size_at_least(start))
        with hdf5_errors():
            file = layout.make(path)
            try:
                layout.lay_out(file, start)
                file.flush()
                disk.reserve(path, path.stat().st_size)
                return cls(path, file)
            except BaseException:
                file.close()
                raise

    @classmethod
    def open(cls, path: Path) -> RunFile:
        """Open a file that `reader.load_run` has verified."""
        with hdf5_errors():
            file = layout.open_again(path)
            return cls(path, file)

    @property
    def status(self) -> str:
        """The stored status."""
        return bytes(self._file["status"][()]).decode()

    @property
    def rounds_completed(self) -> int:
        """Rounds applied, whether written yet or not."""
        return max(self._completed, self._held[-1].round + 1 if self._held else 0)

    @property
    def written_rounds(self) -> int:
        """Rounds whose results, and whose measurements in the newest attempt, are in the file."""
        return min(self._completed, self.first_round + self._written)

    @property
    def attempts(self) -> int:
        """Number of attempts so far."""
        return len(self._file["lives"])

    @property
    def created(self) -> str:
        """When it was begun, UTC."""
        return bytes(self._file.attrs["created"]).decode()

    @property
    def clients(self) -> list[str]:
        """Names of the clients, in client order."""
        return [str(name) for name in self._file["clients"].asstr()[()]]

    def _sizes(self, ranks: int, collectives: int) -> dict[str, int]:
        return axis_sizes(len(self._file["clients"]), ranks, collectives, self._file["partition"])

    def result_row(self, name: str, index: int) -> Array:
        """Return the recorded row of a result."""
        if index >= self._completed:
            self.write_out()
        return np.asarray(self._file["rounds"][name][index])

    def apply(self, event: Event) -> None:
        """Write the event; a round when its block is due."""
        if isinstance(event, Round):
            if self._held and not _follows(event, self._held[-1]):
                self.write_out()
            self._held.append(event)
            if time.monotonic() - self._block_written >= HOLD_S:
                self.write_out()
            return
        self.write_out()
        with hdf5_errors():
            match event:
                case Attempt():
                    self._add_attempt(event)
                case Status():
                    self._set_status(event)
            self._file.flush()

    def write_out(self) -> None:
        """Write the rounds that are held; a failed write is not tried again."""
        rounds, self._held = self._held, []
        if rounds:
            self._block_written = time.monotonic()
            self._placed.check()
            with hdf5_errors():
                self._write_block(rounds)
                self._file.flush()

    def reserve_attempt(self, attempt: Attempt) -> None:
        """Take the disk space that the attempt will need, or raise OSError with nothing changed."""
        needed = sum(array.nbytes for array in self._attempt_arrays(attempt).values()) + _METADATA_BYTES
        needed += len(canonical_json(attempt.provenance))
        disk.reserve(self.path, self.path.stat().st_size + needed)

    def _attempt_arrays(self, attempt: Attempt) -> dict[str, Array]:
        sizes = self._sizes(attempt.ranks, len(attempt.collectives))
        left = int(self._file.attrs["rounds"]) - attempt.first_round
        return layout.in_attempt(left, self.extra, sizes)

    def _add_attempt(self, attempt: Attempt) -> None:
        number = self.attempts
        arrays = self._attempt_arrays(attempt)
        layout.lay_out_attempt(self._file, number, attempt, self.extra, arrays)
        self._set_status(Status("running", "", ""))
        self._file.flush()
        size = self._file.id.get_filesize()
        os.truncate(self.path, size)  # what was reserved too much would hide a later cut
        disk.reserve(self.path, size)
        self._bind_attempt(number)

    def _bind_attempt(self, number: int) -> None:
        group = self._file[f"lives/{number}"]
        self.first_round = int(group.attrs["first_round"])
        self._written = int(group["rounds_written"][()])
        self.sizes = self._sizes(int(group.attrs["ranks"]), len(group.attrs["collectives"]))
        self._measured = {name: Rows(group[name]) for name in measurement_fields(self.extra)}
        self._measured_digests = Rows(group["digests/measurements"])

    def _write_block(self, rounds: Sequence[Round]) -> None:
        first, end = rounds[0].round, rounds[-1].round + 1
        results = write_rows(self._results, first, [event.results for event in rounds])
        row = first - self.first_round
        measured = write_rows(self._measured, row, [event.measurements for event in rounds])
        # A kill may hit between any two writes, so digests go out after what they are of, counts after both.
        self._file.flush()
        self._measured_digests.write(row, list(digests.of_rounds(first, measured)))
        self._file.flush()
        self._result_digests.write(first, list(digests.of_rounds(first, results)))
        if end - self.first_round > self._written:
            self._written = end - self.first_round
            self._file[f"lives/{self.attempts - 1}/rounds_written"][()] = self._written
        self._file.flush()
        if end > self._completed:
            self._completed = end
            self._file["rounds_completed"][()] = self._completed

    def _set_status(self, event: Status) -> None:
        reason = event.reason.encode()[: layout.REASON_BYTES].decode(errors="ignore").encode()
        self._set_text(self._file, "status", event.status.encode())
        self._set_text(self._file, "reason", reason)
        if event.status != "running" and self.attempts:
            self._set_text(self._file[f"lives/{self.attempts - 1}"], "ended", event.time.encode())

    def _set_text(self, group: h5py.Group, name: str, value: bytes) -> None:
        """Change a text; at any moment one of its two digests is that of what stands there."""
        slots, digest = group[f"digests/{name}_now_and_before"], digests.of_text(value)
        slots[0] = digest
        self._file.flush()
        group[name][()] = np.bytes_(value)
        self._file.flush()
        slots[1] = digest

    def silence(self) -> None:
        """Discard held rounds and all later writes, also those of closing the file."""
        self._held = []
        if self._file:
            disk.silence(self._file.id.get_vfd_handle())

    def close(self) -> None:
        """Write what is held and close the file; closing twice is fine."""
        try:
            self.write_out()
        finally:
            with hdf5_errors():
                self._file.close()


def _follows(event: Round, before: Round) -> bool:
    """Return whether a round can be written together with the one before."""
    return event.round == before.round + 1 and event.measurements.keys() == before.measurements.keys()


def _read_extra(file: h5py.File) -> tuple[Field, ...]:
    items: list[Mapping[str, Any]] = json.loads(file.attrs["extra_fields"])
    return tuple(Field(**{**item, "axes": tuple(item["axes"])}) for item in items)
