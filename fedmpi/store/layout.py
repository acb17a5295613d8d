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

REASON_BYTES = 1024
_TEXT = np.array(b"", "S1")
"""Where a text of any length belongs."""

_COUNT = np.array(0, np.int64)
_STRUCTURE_BYTES = 128 * 1024
_FORMAT: Mapping[str, Any] = {"libver": ("v108", "v108"), "alignment_threshold": 1, "alignment_interval": 8}


def make(path: Path) -> h5py.File:
    """Create a file; every number in it lies at a multiple of 8 bytes, so that none is ever half written."""
    return open_file(path, "x", **_FORMAT)


def open_again(path: Path) -> h5py.File:
    """Open a file that `make` created, to write on."""
    return open_file(path, "r+", **_FORMAT)


def in_file(rounds: int, extra: Sequence[Field], sizes: Mapping[str, int]) -> dict[str, Array]:
    """Return the datasets of a file, but for partition and attempts: types, sizes, and what is in a new one.

    Parameters
    ----------
    rounds : int
        Planned.
    extra : sequence of Field
        Fields beyond the schema's.
    sizes : mapping of str to int
        Length of each axis.

    Returns
    -------
    dict of arrays
        By path; they take no memory.
    """
    fields = _below("rounds/", result_fields(extra))
    stored_texts = {"status": np.array(b"running", "S16"), "reason": np.array(b"", f"S{REASON_BYTES}")}
    return {
        "config": _TEXT,
        "rounds_completed": _COUNT,
        "clients": np.broadcast_to(_TEXT, sizes["client"]),
        **_datasets("results", rounds, stored_texts, fields, sizes),
    }


def in_attempt(rounds: int, extra: Sequence[Field], sizes: Mapping[str, int]) -> dict[str, Array]:
    """Return the same of an attempt's group; it has a row for each of the rounds from its first one on."""
    ended = {"ended": np.array(b"", "S32")}
    return {
        "provenance": _TEXT,
        "rounds_written": _COUNT,
        **_datasets("measurements", rounds, ended, measurement_fields(extra), sizes),
    }


def _below(place: str, fields: Mapping[str, Field]) -> dict[str, Field]:
    return {f"{place}{name}": field for name, field in fields.items()}


def _datasets(
    rows: str,
    rounds: int,
    stored_texts: Mapping[str, Array],
    fields: Mapping[str, Field],
    sizes: Mapping[str, int],
) -> dict[str, Array]:
    """Return texts that change, fields, and digests: none of a round yet, of each text what it is and was."""
    return {
        **stored_texts,
        f"digests/{rows}": np.broadcast_to(np.array(digests.BLANK, digests.DTYPE), rounds),
        "digests/rest": np.array(digests.BLANK, digests.DTYPE),
        **{
            f"digests/{name}_now_and_before": np.full(2, digests.of_text(text.item()), digests.DTYPE)
            for name, text in stored_texts.items()
        },
        **{
            path: np.broadcast_to(field.blank(()), (rounds, *field.shape(sizes)))
            for path, field in fields.items()
        },
    }


def size_at_least(start: Start) -> int:
    """Return the bytes of the datasets of `lay_out`, and as much as HDF5's own structures may take."""
    sizes = axis_sizes(len(start.clients), partition=start.partition)
    arrays = [*in_file(start.rounds, start.extra, sizes).values(), *start.partition.values()]
    return sum(array.nbytes for array in arrays) + len(canonical_json(start.config)) + _STRUCTURE_BYTES


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
    config, sizes = canonical_json(start.config), axis_sizes(len(start.clients), partition=start.partition)
    arrays = {
        **in_file(start.rounds, start.extra, sizes),
        "config": texts(config),
        "clients": texts(start.clients),
        "digests/rest": _rest(rest_of_file(attributes, config, start.clients, start.partition)),
    }
    fields = {"clients": Field("clients", ("client",), "O", meanings.TEXT, _NAMES, "result")}
    for name, array in start.partition.items():
        unit, meaning = meanings.of_partition(name)
        arrays[f"partition/{name}"] = texts(array) if array.dtype.kind == "U" else array
        fields[f"partition/{name}"] = Field(name, (), array.dtype.str, unit, meaning, "result")
    for group in ("partition", "lives"):
        file.create_group(group)
    _write(file, arrays, fields | _below("rounds/", result_fields(start.extra)), {})


_NAMES = "names of the clients, in client order"


def lay_out_attempt(
    file: h5py.File, number: int, attempt: Attempt, extra: Sequence[Field], arrays: Mapping[str, Array]
) -> None:
    """Write the group of an attempt.

    Parameters
    ----------
    file : h5py.File
    number : int
        Of the attempt, from 0.
    attempt : Attempt
    extra : sequence of Field
        Fields beyond the schema's.
    arrays : mapping of str to array
        What `in_attempt` returned.
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
    rest = _rest(rest_of_attempt(attributes, provenance))
    known = {"provenance": texts(provenance), "digests/rest": rest}
    names = {"phase": PHASES, "collective": attempt.collectives}
    _write(group, {**arrays, **known}, measurement_fields(extra), names)


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


def _rest(values: Mapping[str, Any]) -> Array:
    return np.array(digests.of_values(values), digests.DTYPE)


def _attributes(item: h5py.Group | h5py.Dataset, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        item.attrs[name] = texts(value) if isinstance(value, str | list | tuple) else value


def _write(
    group: h5py.Group,
    arrays: Mapping[str, Array],
    fields: Mapping[str, Field],
    names: Mapping[str, Sequence[str]],
) -> None:
    """Write datasets in full, so that their space is taken now, with the attributes that explain them."""
    for path, values in arrays.items():
        if field := fields.get(path):
            about: dict[str, Any] = {"unit": field.unit, "meaning": field.meaning, "kind": field.kind}
            about |= {"better": field.better or "", "axes": field.axes}
            about |= {f"{axis}s": names[axis] for axis in field.axes[-1:] if axis in names}
        else:
            about = dict(zip(("unit", "meaning"), meanings.OTHERS[path.rpartition("/")[2]], strict=True))
        _attributes(group.create_dataset(path, data=values), about)


def texts(values: Any) -> Array:
    """Return texts as an array that h5py stores as UTF-8 of one length, also if there are none."""
    given = np.asarray(values, dtype=str)
    encoded = [item.encode() for item in given.ravel().tolist()]
    longest = max([1, *map(len, encoded)])
    return np.array(encoded, dtype=h5py.string_dtype(length=longest)).reshape(given.shape)
