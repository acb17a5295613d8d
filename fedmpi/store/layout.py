"""What `run.h5` is laid out with: every dataset in full, before anything is written into it.

The file is in the format of HDF5 1.8, whose headers carry checksums, and every text in it has a fixed length:
HDF5 keeps others in heaps without a checksum, through which one damaged byte can lead it anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.store import digests, meanings
from fedmpi.store.events import Attempt, Start
from fedmpi.store.hdf5 import h5py, open_file
from fedmpi.store.schema import (
    PHASES,
    SCHEMA_VERSION,
    Array,
    Field,
    axis_sizes,
    canonical_json,
    config_digest,
    measurement_fields,
    result_fields,
)

STATUS, REASON, STAMP = "S16", "S1024", "S32"
REASON_BYTES = 1024
_STRUCTURE_BYTES = 128 * 1024
_FORMAT: Mapping[str, Any] = {"libver": ("v108", "v108"), "alignment_threshold": 1, "alignment_interval": 8}


def make(path: Path) -> h5py.File:
    """Create a file; every number in it lies at a multiple of 8 bytes, so that none is ever half written."""
    return open_file(path, "x", **_FORMAT)


def open_again(path: Path) -> h5py.File:
    """Open a file that `make` created, to write on."""
    return open_file(path, "r+", **_FORMAT)


def size_at_least(start: Start) -> int:
    """Return the bytes of the datasets of `lay_out`, and as much as HDF5's own structures may take."""
    sizes = axis_sizes(len(start.clients), partition=start.partition)
    rows = sum(field.blank(field.shape(sizes)).nbytes for field in result_fields(start.extra).values())
    arrays = sum(array.nbytes for array in start.partition.values())
    return start.rounds * (rows + 8) + arrays + len(canonical_json(start.config)) + _STRUCTURE_BYTES


def lay_out(file: h5py.File, start: Start) -> None:
    """Write everything but the attempts into a new file."""
    attributes = {
        "schema_version": SCHEMA_VERSION,
        "fedmpi_version": start.fedmpi_version,
        "numerics_version": start.numerics_version,
        "config_digest": config_digest(start.config),
        "rounds": start.rounds,
        "created": start.time,
        "extra_fields": json.dumps([vars(field) for field in start.extra]),
        "metrics": json.dumps([metric.plain() for metric in start.metrics]),
    }
    _attributes(file, attributes)
    config = canonical_json(start.config)
    _value(file, "config", texts(config))
    _value(file, "status", np.array(b"running", STATUS))
    _value(file, "reason", np.array(b"", REASON))
    _value(file, "rounds_completed", np.int64(0))
    _add(file, Field("clients", ("client",), "O", meanings.TEXT, _NAMES, "result"), texts(start.clients))
    partition = file.create_group("partition")
    for name, array in start.partition.items():
        unit, meaning = meanings.of_partition(name)
        field = Field(name, (), array.dtype.str, unit, meaning, "result")
        _add(partition, field, texts(array) if array.dtype.kind == "U" else array)
    file.create_group("lives")
    rounds = file.create_group("rounds")
    sizes = axis_sizes(len(start.clients), partition=start.partition)
    for field in result_fields(start.extra).values():
        _add(rounds, field, field.blank((start.rounds, *field.shape(sizes))))
    rest = digests.of_values(rest_of_file(attributes, config, start.clients, start.partition))
    _digests(file, "results", start.rounds, rest, {"status": b"running", "reason": b""})


_NAMES = "names of the clients, in client order"


def attempt_arrays(
    attempt: Attempt, rounds: int, extra: Sequence[Field], sizes: Mapping[str, int]
) -> list[tuple[Field, Array]]:
    """Return each measurement field with its blank array.

    Parameters
    ----------
    attempt : Attempt
    rounds : int
        Rounds of the run; the arrays have a row for each from the attempt's first one.
    extra : sequence of Field
        Fields beyond the schema's.
    sizes : mapping of str to int
        Length of each axis.
    """
    left = rounds - attempt.first_round
    fields = measurement_fields(extra).values()
    return [(field, field.blank((left, *field.shape(sizes)))) for field in fields]


def lay_out_attempt(
    file: h5py.File, number: int, attempt: Attempt, arrays: Sequence[tuple[Field, Array]]
) -> None:
    """Write the group of an attempt.

    Parameters
    ----------
    file : h5py.File
    number : int
        Of the attempt, from 0.
    attempt : Attempt
    arrays : sequence of (Field, array)
        What `attempt_arrays` returned.
    """
    group = file.create_group(f"lives/{number}")
    attributes = {
        "first_round": attempt.first_round,
        "ranks": attempt.ranks,
        "started": attempt.time,
        "collectives": list(attempt.collectives),
    }
    _attributes(group, attributes)
    provenance = canonical_json(attempt.provenance)
    _value(group, "provenance", texts(provenance))
    _value(group, "rounds_written", np.int64(0))
    _value(group, "ended", np.array(b"", STAMP))
    for field, blank in arrays:
        names = {"phase": PHASES, "collective": attempt.collectives}.get(field.axes[-1])
        _add(group, field, blank, names)
    rest = digests.of_values(rest_of_attempt(attributes, provenance))
    _digests(group, "measurements", len(arrays[0][1]), rest, {"ended": b""})


def rest_of_file(
    attributes: Mapping[str, Any], config: str, clients: Sequence[str], partition: Mapping[str, Array]
) -> dict[str, Any]:
    """Return what never changes in a file, by name, for its digest.

    Parameters
    ----------
    attributes : mapping
        Of the root.
    config : str
        Canonical JSON.
    clients : sequence of str
    partition : mapping of str to array
    """
    arrays = {f"partition/{name}": array for name, array in partition.items()}
    return {**attributes, "config": config, "clients": list(clients), **arrays}


def rest_of_attempt(attributes: Mapping[str, Any], provenance: str) -> dict[str, Any]:
    """Return what never changes in an attempt, by name, for its digest."""
    return {**attributes, "provenance": provenance}


def _digests(group: h5py.Group, rows: str, rounds: int, rest: int, stored_texts: Mapping[str, bytes]) -> None:
    """Write the digests of a file or an attempt: none of a round yet, of each text what it is and was."""
    inner = group.create_group("digests")
    _value(inner, rows, np.full(rounds, digests.BLANK, digests.DTYPE))
    _value(inner, "rest", np.array(rest, digests.DTYPE))
    for name, value in stored_texts.items():
        _value(inner, f"{name}_now_and_before", np.full(2, digests.of_text(value), digests.DTYPE))


def _attributes(item: h5py.Group | h5py.Dataset, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        item.attrs[name] = texts(value) if isinstance(value, str | list | tuple) else value


def _value(group: h5py.Group, name: str, value: Any) -> None:
    """Write a single value with the attributes that explain it."""
    unit, meaning = meanings.OTHERS[name]
    _attributes(group.create_dataset(name, data=value), {"unit": unit, "meaning": meaning})


def _add(group: h5py.Group, field: Field, values: Array, names: Sequence[str] | None = None) -> None:
    """Write a dataset in full, so that its space is taken now, with the attributes that explain it."""
    about: dict[str, Any] = {"unit": field.unit, "meaning": field.meaning, "kind": field.kind}
    about |= {"better": field.better or "", "axes": field.axes}
    if names is not None:
        about[f"{field.axes[-1]}s"] = names
    _attributes(group.create_dataset(field.name, data=values), about)


def texts(values: Any) -> Array:
    """Return texts as an array that h5py stores as UTF-8 of one length, also if there are none."""
    given = np.asarray(values, dtype=str)
    encoded = [item.encode() for item in given.ravel().tolist()]
    longest = max([1, *map(len, encoded)])
    return np.array(encoded, dtype=h5py.string_dtype(length=longest)).reshape(given.shape)
