"""The HDF5 file `run.h5`: laid out in full before the first round, then only written in place."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.store import digests, disk, layout
from fedmpi.store.blocks import Block, Rows, hdf5_errors, write_rows
from fedmpi.store.events import Attempt, Event, Round, Start, Status
from fedmpi.store.hdf5 import h5py
from fedmpi.store.schema import (
    Array,
    Field,
    axis_sizes,
    canonical_json,
    measurement_fields,
    num_examples,
    num_tasks,
    result_fields,
)

NAME = "run.h5"
_METADATA_BYTES = 1 << 16
"""Room for the headers of one attempt's group; measured 14 KiB."""


class RunFile:
    """`run.h5` open for writing. Events are applied to it; all failures are OSError.

    Rounds are written in blocks: one that comes within `blocks.HOLD_S` of the last block waits for the
    next event.
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._placed = disk.Placed(path)
        self._file = file
        self._extra = _read_extra(file)
        self._results = {name: Rows(file["rounds"][name]) for name in result_fields(self._extra)}
        self._measured: dict[str, Rows] = {}
        self._result_digests = Rows(file["digests/results"])
        self._block = Block()
        self._first_round = 0
        self._completed = int(file["rounds_completed"][()])
        self._written = 0
        self._attempt_sizes: dict[str, int] = {}
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
            try:
                return cls(path, file)
            except BaseException:
                file.close()
                raise

    @property
    def status(self) -> str:
        """The stored status."""
        return bytes(self._file["status"][()]).decode()

    @property
    def rounds_completed(self) -> int:
        """Rounds applied, whether written yet or not."""
        return max(self._completed, self._block.rounds[-1].round + 1 if self._block.rounds else 0)

    @property
    def written_rounds(self) -> int:
        """Rounds whose results, and whose measurements in the newest attempt, are in the file."""
        return min(self._completed, self._first_round + self._written)

    @property
    def attempts(self) -> int:
        """Number of attempts so far."""
        return len(self._file["lives"])

    @property
    def first_round(self) -> int:
        """First round (0-based) of the newest attempt."""
        return self._first_round

    @property
    def extra(self) -> tuple[Field, ...]:
        """The fields beyond the schema's."""
        return self._extra

    @property
    def created(self) -> str:
        """When it was begun, UTC."""
        return bytes(self._file.attrs["created"]).decode()

    @property
    def clients(self) -> list[str]:
        """Names of the clients, in client order."""
        return [str(name) for name in self._file["clients"].asstr()[()]]

    def sizes(self) -> dict[str, int]:
        """Return the axis lengths of a row in the newest attempt."""
        return self._attempt_sizes

    def _sizes(self, ranks: int, collectives: int) -> dict[str, int]:
        partition = self._file["partition"]
        counts = num_examples(partition), num_tasks(partition)
        return axis_sizes(len(self._file["clients"]), ranks, collectives, *counts)

    def result_row(self, name: str, index: int) -> Array:
        """Return the recorded row of a result."""
        if index >= self._completed:
            self.write_out()
        return np.asarray(self._file["rounds"][name][index])

    def apply(self, event: Event) -> None:
        """Write the event; a round when its block is due."""
        if isinstance(event, Round):
            if not self._block.fits(event):
                self.write_out()
            self._block.rounds.append(event)
            if self._block.due():
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
        """Write the rounds that are held."""
        if rounds := self._block.take():
            self._placed.check()
            with hdf5_errors():
                self._write_block(rounds)
                self._file.flush()

    def reserve_attempt(self, attempt: Attempt) -> None:
        """Take the disk space that the attempt will need, or raise OSError with nothing changed."""
        needed = sum(blank.nbytes for _, blank in self._attempt_arrays(attempt)) + _METADATA_BYTES
        needed += len(canonical_json(attempt.provenance))
        disk.reserve(self.path, self.path.stat().st_size + needed)

    def _attempt_arrays(self, attempt: Attempt) -> list[tuple[Field, Array]]:
        sizes = self._sizes(attempt.ranks, len(attempt.collectives))
        return layout.attempt_arrays(attempt, int(self._file.attrs["rounds"]), self._extra, sizes)

    def _add_attempt(self, attempt: Attempt) -> None:
        number = self.attempts
        layout.lay_out_attempt(self._file, number, attempt, self._attempt_arrays(attempt))
        self._set_status(Status("running", "", ""))
        self._file.flush()
        size = self._file.id.get_filesize()
        os.truncate(self.path, size)  # what was reserved too much would hide a later cut
        disk.reserve(self.path, size)
        self._bind_attempt(number)

    def _bind_attempt(self, number: int) -> None:
        group = self._file[f"lives/{number}"]
        self._first_round = int(group.attrs["first_round"])
        self._written = int(group["rounds_written"][()])
        self._attempt_sizes = self._sizes(int(group.attrs["ranks"]), len(group.attrs["collectives"]))
        self._measured = {name: Rows(group[name]) for name in measurement_fields(self._extra)}
        self._measured_digests = Rows(group["digests/measurements"])

    def _write_block(self, rounds: Sequence[Round]) -> None:
        first, end = rounds[0].round, rounds[-1].round + 1
        results = write_rows(self._results, first, [event.results for event in rounds])
        row = first - self._first_round
        measured = write_rows(self._measured, row, [event.measurements for event in rounds])
        # A kill may hit between any two writes, so digests go out after what they are of, counts after both.
        self._file.flush()
        self._measured_digests.write(row, list(digests.of_rounds(first, measured)))
        self._file.flush()
        self._result_digests.write(first, list(digests.of_rounds(first, results)))
        if end - self._first_round > self._written:
            self._written = end - self._first_round
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
        self._block.take()
        if self._file:
            disk.silence(self._file.id.get_vfd_handle())

    def close(self) -> None:
        """Write what is held and close the file; closing twice is fine."""
        try:
            self.write_out()
        finally:
            with hdf5_errors():
                self._file.close()


def _read_extra(file: h5py.File) -> tuple[Field, ...]:
    items: list[Mapping[str, Any]] = json.loads(file.attrs["extra_fields"])
    return tuple(Field(**{**item, "axes": tuple(item["axes"])}) for item in items)
