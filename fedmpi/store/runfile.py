"""The HDF5 file `run.h5`: laid out in full before the first round, then only written in place."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from fedmpi.store import disk, meanings
from fedmpi.store.blocks import Block, Rows, hdf5_errors, write_rows
from fedmpi.store.events import Event, Life, Round, Start, Status
from fedmpi.store.schema import (
    PHASES,
    SCHEMA_VERSION,
    Array,
    Field,
    axis_sizes,
    canonical_json,
    config_digest,
    measurement_fields,
    num_tasks,
    num_test_graphs,
    result_fields,
)

NAME = "run.h5"
_STATUS_BYTES = 16
_REASON_BYTES = 1024
_STAMP_BYTES = 32
_METADATA_BYTES = 1 << 16
"""Room for the headers of one life's group; measured 14 KiB."""

_STRUCTURE_BYTES = 128 * 1024


class RunFile:
    """`run.h5` open for writing. Events are applied to it; all failures are OSError.

    Rounds are written in blocks: one that comes within `blocks.HOLD_S` of the last block waits for the
    next event.
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._file = file
        self._extra = _read_extra(file)
        self._results = {name: Rows(file["rounds"][name]) for name in result_fields(self._extra)}
        self._measured: dict[str, Rows] = {}
        self._block = Block()
        self._first_round = 0
        self._completed = int(file["rounds_completed"][()])
        self._written = 0
        self._life_sizes: dict[str, int] = {}
        if self.lives:
            self._bind_life(self.lives - 1)

    @classmethod
    def create(cls, path: Path, start: Start) -> RunFile:
        """Make the file with everything but the lives; it must not exist."""
        disk.require(path, _size_at_least(start))
        with hdf5_errors():
            file = h5py.File(path, "x", locking="best-effort")
            try:
                _lay_out(file, start)
                file.flush()
                disk.reserve(path, path.stat().st_size)
                return cls(path, file)
            except BaseException:
                file.close()
                raise

    @classmethod
    def open(cls, path: Path) -> RunFile:
        """Open an existing file; OSError or KeyError if it is missing, damaged or foreign."""
        with hdf5_errors():
            file = h5py.File(path, "r+", locking="best-effort")
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
        """Rounds whose results, and whose measurements in the newest life, are in the file."""
        return min(self._completed, self._first_round + self._written)

    @property
    def lives(self) -> int:
        """Number of lives so far."""
        return len(self._file["lives"])

    @property
    def first_round(self) -> int:
        """First round (0-based) of the newest life."""
        return self._first_round

    @property
    def extra(self) -> tuple[Field, ...]:
        """The fields beyond the schema's."""
        return self._extra

    @property
    def clients(self) -> list[str]:
        """Names of the clients, in client order."""
        return list(self._file["clients"].asstr()[()])

    def sizes(self) -> dict[str, int]:
        """Return the axis lengths of a row in the newest life."""
        return self._life_sizes

    def _sizes(self, ranks: int, collectives: int) -> dict[str, int]:
        partition = self._file["partition"]
        counts = num_test_graphs(partition), num_tasks(partition)
        return axis_sizes(len(self._file["clients"]), ranks, collectives, *counts)

    def result_row(self, name: str, index: int) -> Array:
        """Return the recorded row of a result."""
        if index >= self._completed:
            self.write_out()
        return np.asarray(self._file["rounds"][name][index])

    def apply(self, event: Event) -> None:
        """Write what the event says; a round when its block is due."""
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
                case Life():
                    self._add_life(event)
                case Status():
                    self._set_status(event)
            self._file.flush()

    def write_out(self) -> None:
        """Write the rounds that are held."""
        if rounds := self._block.take():
            with hdf5_errors():
                self._write_block(rounds)
                self._file.flush()

    def reserve_life(self, life: Life) -> None:
        """Take the disk space that the life will need, or raise OSError with nothing changed."""
        needed = sum(blank.nbytes for _, blank in self._life_arrays(life)) + _METADATA_BYTES
        needed += len(canonical_json(life.provenance))
        disk.reserve(self.path, self.path.stat().st_size + needed)

    def _life_arrays(self, life: Life) -> list[tuple[Field, Array]]:
        rounds = int(self._file.attrs["rounds"]) - life.first_round
        sizes = self._sizes(life.ranks, len(life.collectives))
        fields = measurement_fields(self._extra).values()
        return [(field, field.blank((rounds, *field.shape(sizes)))) for field in fields]

    def _add_life(self, life: Life) -> None:
        number = self.lives
        group = self._file.create_group(f"lives/{number}")
        group.attrs["first_round"] = life.first_round
        group.attrs["ranks"] = life.ranks
        group.attrs["started"] = life.time
        group.attrs["collectives"] = _texts(life.collectives)
        _value(group, "provenance", canonical_json(life.provenance))
        _value(group, "rounds_written", np.int64(0))
        _value(group, "ended", np.bytes_(b""), f"S{_STAMP_BYTES}")
        for field, blank in self._life_arrays(life):
            names = {"phase": PHASES, "collective": life.collectives}.get(field.axes[-1])
            _add(group, field, blank, names)
        self._set_status(Status("running", "", ""))
        self._file.flush()
        size = self._file.id.get_filesize()
        os.truncate(self.path, size)  # what was reserved too much would hide a later cut
        disk.reserve(self.path, size)
        self._bind_life(number)

    def _bind_life(self, number: int) -> None:
        group = self._file[f"lives/{number}"]
        self._first_round = int(group.attrs["first_round"])
        self._written = int(group["rounds_written"][()])
        self._life_sizes = self._sizes(int(group.attrs["ranks"]), len(group.attrs["collectives"]))
        self._measured = {name: Rows(group[name]) for name in measurement_fields(self._extra)}

    def _write_block(self, rounds: Sequence[Round]) -> None:
        first, end = rounds[0].round, rounds[-1].round + 1
        write_rows(self._results, first, [event.results for event in rounds])
        write_rows(self._measured, first - self._first_round, [event.measurements for event in rounds])
        # A kill may hit between any two writes, so each count goes out after what it vouches for.
        self._file.flush()
        if end - self._first_round > self._written:
            self._written = end - self._first_round
            self._file[f"lives/{self.lives - 1}/rounds_written"][()] = self._written
        self._file.flush()
        if end > self._completed:
            self._completed = end
            self._file["rounds_completed"][()] = self._completed

    def _set_status(self, event: Status) -> None:
        self._file["status"][()] = np.bytes_(event.status.encode())
        reason = event.reason.encode()[:_REASON_BYTES].decode(errors="ignore").encode()
        self._file["reason"][()] = np.bytes_(reason)
        if event.status != "running" and self.lives:
            self._file[f"lives/{self.lives - 1}/ended"][()] = np.bytes_(event.time.encode())

    def close(self) -> None:
        """Write what is held and close the file; closing twice is fine."""
        try:
            self.write_out()
        finally:
            with hdf5_errors():
                self._file.close()


def _size_at_least(start: Start) -> int:
    """Return the bytes of the datasets of `_lay_out`, and as much again as HDF5's own structures may take."""
    sizes = _axis_sizes(start)
    rows = sum(field.blank(field.shape(sizes)).nbytes for field in result_fields(start.extra).values())
    arrays = sum(array.nbytes for array in start.partition.values())
    return start.rounds * rows + arrays + len(canonical_json(start.config)) + _STRUCTURE_BYTES


def _axis_sizes(start: Start) -> dict[str, int]:
    counts = num_test_graphs(start.partition), num_tasks(start.partition)
    return axis_sizes(len(start.clients), test_graphs=counts[0], tasks=counts[1])


def _lay_out(file: h5py.File, start: Start) -> None:
    file.attrs["schema_version"] = SCHEMA_VERSION
    file.attrs["fedmpi_version"] = start.fedmpi_version
    file.attrs["numerics_version"] = start.numerics_version
    file.attrs["config_digest"] = config_digest(start.config)
    file.attrs["rounds"] = start.rounds
    file.attrs["created"] = start.time
    file.attrs["extra_fields"] = json.dumps([vars(field) for field in start.extra])
    _value(file, "config", canonical_json(start.config))
    _value(file, "status", np.bytes_(b"running"), f"S{_STATUS_BYTES}")
    _value(file, "reason", np.bytes_(b""), f"S{_REASON_BYTES}")
    _value(file, "rounds_completed", np.int64(0))
    clients = Field(
        "clients", ("client",), "O", meanings.TEXT, "names of the clients, in client order", "result"
    )
    _add(file, clients, _texts(start.clients))
    partition = file.create_group("partition")
    for name, array in start.partition.items():
        unit, meaning = meanings.PARTITION.get(name, ("1", f"partition: {name}"))
        field = Field(name, (), array.dtype.str, unit, meaning, "result")
        _add(partition, field, _texts(array) if array.dtype.kind == "U" else array)
    file.create_group("lives")
    rounds = file.create_group("rounds")
    sizes = _axis_sizes(start)
    for field in result_fields(start.extra).values():
        _add(rounds, field, field.blank((start.rounds, *field.shape(sizes))))


def _value(group: h5py.Group, name: str, value: Any, dtype: str | None = None) -> None:
    """Write a single value with the attributes that explain it."""
    dataset = group.create_dataset(name, data=value, dtype=dtype)
    dataset.attrs["unit"], dataset.attrs["meaning"] = meanings.OTHERS[name]


def _add(group: h5py.Group, field: Field, values: Array, names: tuple[str, ...] | None = None) -> None:
    """Write a dataset in full, so that its space is taken now, with the attributes that explain it."""
    dataset = group.create_dataset(field.name, data=values)
    dataset.attrs["unit"], dataset.attrs["meaning"] = field.unit, field.meaning
    dataset.attrs["kind"] = field.kind
    dataset.attrs["better"] = field.better or ""
    dataset.attrs["axes"] = _texts(field.axes)
    if names is not None:
        dataset.attrs[f"{field.axes[-1]}s"] = _texts(names)


def _texts(names: Any) -> Array:
    """Return names as an array that h5py stores as UTF-8 strings, also if there are none."""
    given = np.asarray(names, dtype=object)
    texts = np.empty(given.shape, dtype=h5py.string_dtype())
    texts[...] = given
    return texts


def _read_extra(file: h5py.File) -> tuple[Field, ...]:
    items: list[Mapping[str, Any]] = json.loads(file.attrs["extra_fields"])
    return tuple(Field(**{**item, "axes": tuple(item["axes"])}) for item in items)
