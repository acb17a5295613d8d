"""Reads the record of a run, whatever state its writer left it in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import h5py
import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import events, lock, runfile
from fedmpi.store.schema import SCHEMA_VERSION, Array


@dataclass(frozen=True)
class LifeRecord:
    """What one life of the run measured.

    Attributes
    ----------
    first_round : int
        Its first round, 0-based.
    rounds_written : int
        Rounds it finished; the first axis of every measurement.
    ranks : int
    phases, collectives : tuple of str
        Names along those axes.
    started, ended : str
        UTC; `ended` is empty if it was killed or still runs.
    provenance : dict
    measurements : dict of arrays
        Row 0 is round `first_round`.
    """

    first_round: int
    rounds_written: int
    ranks: int
    phases: tuple[str, ...]
    collectives: tuple[str, ...]
    started: str
    ended: str
    provenance: dict[str, Any]
    measurements: dict[str, Array]


@dataclass(frozen=True)
class Run:
    """The record of one run, in memory.

    Attributes
    ----------
    folder : Path
    config, config_digest : dict, str
    fedmpi_version, numerics_version : str, int
    status : str
        running, complete, interrupted, diverged, failed; or "stale": says running, but no live
        process holds the folder.
    reason : str
        Why, for people; empty where nothing went wrong.
    rounds, rounds_completed : int
        Planned and recorded.
    clients : tuple of str
    results : dict of arrays [rounds_completed, ...]
    partition : dict of arrays
    lives : tuple of LifeRecord
        In the order they ran.
    """

    folder: Path
    config: dict[str, Any]
    config_digest: str
    fedmpi_version: str
    numerics_version: int
    status: str
    reason: str
    rounds: int
    rounds_completed: int
    clients: tuple[str, ...]
    results: dict[str, Array]
    partition: dict[str, Array]
    lives: tuple[LifeRecord, ...]

    def kept_rounds(self) -> Iterator[tuple[LifeRecord, Array]]:
        """Yield each life with the rows (int64) of the rounds that no later life computed again."""
        owner = np.full(self.rounds_completed, -1)
        for number, life in enumerate(self.lives):
            owner[life.first_round : life.first_round + life.rounds_written] = number
        for number, life in enumerate(self.lives):
            yield life, np.flatnonzero(owner == number) - life.first_round

    def measured(self, name: str) -> Array:
        """Return a measurement over all rounds, each from the last life to compute it.

        Shape [rounds_completed, ...]; only for measurements without a rank axis,
        whose length may change from life to life. Needs at least one life.
        """
        like = self.lives[0].measurements[name]
        rows = np.zeros((self.rounds_completed, *like.shape[1:]), like.dtype)
        for life, kept in self.kept_rounds():
            rows[kept + life.first_round] = life.measurements[name][kept]
        return rows


def load_run(path: Path) -> Run:
    """Read a record.

    Parameters
    ----------
    path : Path
        `run.h5` or the folder it lies in.

    Raises
    ------
    BadInput
        Missing, damaged, foreign, or of a newer schema; one line with what to do.
    """
    file = path / runfile.NAME if path.is_dir() else path
    if not file.is_file():
        raise BadInput(f"{file}: no such record{_repair_hint(file)}")
    try:
        with h5py.File(file, "r", locking=False) as handle:
            _check_schema(file, handle)
            return _read(file.parent, handle)
    except BadInput:
        raise
    except (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        if lock.state(file.parent) == "live":
            raise BadInput(f"{file}: is being written just now; try again") from error
        raise BadInput(f"{file}: damaged or no HDF5 file{_repair_hint(file)}") from error


def _repair_hint(file: Path) -> str:
    if file.name == runfile.NAME and (file.parent / events.NAME).is_file():
        return f"; its rounds are in {events.NAME}: fedmpi repair {quote(str(file.parent))}"
    return ""


def _check_schema(file: Path, handle: h5py.File) -> None:
    if "schema_version" not in handle.attrs:
        raise BadInput(f"{file}: an HDF5 file, but not the record of a fedmpi run (no schema_version)")
    version = int(handle.attrs["schema_version"])
    if version > SCHEMA_VERSION:
        raise BadInput(
            f"{file}: written in schema {version}, this fedmpi reads up to {SCHEMA_VERSION}; update fedmpi"
        )


def _read(folder: Path, handle: h5py.File) -> Run:
    completed = int(handle["rounds_completed"][()])
    status = _text(handle["status"])
    if status == "running" and lock.state(folder) != "live":
        status = "stale"
    return Run(
        folder=folder,
        config=json.loads(_text(handle["config"])),
        config_digest=str(handle.attrs["config_digest"]),
        fedmpi_version=str(handle.attrs["fedmpi_version"]),
        numerics_version=int(handle.attrs["numerics_version"]),
        status=status,
        reason=_text(handle["reason"]),
        rounds=int(handle.attrs["rounds"]),
        rounds_completed=completed,
        clients=tuple(handle["clients"].asstr()[()].tolist()),
        results={name: data[:completed] for name, data in handle["rounds"].items()},
        partition=_arrays(handle["partition"]),
        lives=tuple(_life(handle[f"lives/{number}"]) for number in range(len(handle["lives"]))),
    )


def _life(group: h5py.Group) -> LifeRecord:
    written = int(group["rounds_written"][()])
    datasets = {name: data for name, data in group.items() if data.attrs.get("kind") == "measurement"}
    return LifeRecord(
        first_round=int(group.attrs["first_round"]),
        rounds_written=written,
        ranks=int(group.attrs["ranks"]),
        phases=tuple(group["phase_seconds"].attrs["phases"].tolist()),
        collectives=tuple(group.attrs["collectives"].tolist()),
        started=str(group.attrs["started"]),
        ended=_text(group["ended"]),
        provenance=json.loads(_text(group["provenance"])),
        measurements={name: data[:written] for name, data in datasets.items()},
    )


def _arrays(group: h5py.Group) -> dict[str, Array]:
    found: dict[str, Array] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            text = h5py.check_string_dtype(item.dtype) is not None
            found[name] = item.asstr()[()].astype(str) if text else item[()]

    group.visititems(visit)
    return found


def _text(dataset: h5py.Dataset) -> str:
    value = dataset[()]
    return bytes(value).decode()
