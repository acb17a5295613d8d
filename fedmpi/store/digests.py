"""Digests of what a record holds: 64 bits of BLAKE2b, so that a damaged number never passes for a result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.store.schema import Array

DTYPE = "u8"
BLANK = 0
"""In the place of a digest: nothing was written there. No digest is 0."""


def of_rounds(first: int, arrays: Mapping[str, Array]) -> npt.NDArray[np.uint64]:
    """Return a digest for each of several consecutive rounds.

    Parameters
    ----------
    first : int
        The first of them, 0-based.
    arrays : mapping
        All fields by name, each [rounds, ...]; every NaN counts as the same.
    """
    rows = [(name.encode() + b"\0", _bytes_by_round(arrays[name])) for name in sorted(arrays)]
    count = len(rows[0][1])
    row_digests = np.empty(count, np.uint64)
    for place in range(count):
        digest = hashlib.blake2b(b"%d\0" % (first + place), digest_size=8)
        for name, values in rows:
            digest.update(name)
            digest.update(values[place])
        row_digests[place] = _number(digest)
    return row_digests


def of_text(text: bytes) -> int:
    """Return the digest of a text."""
    return _number(hashlib.blake2b(text, digest_size=8))


def of_values(values: Mapping[str, Any]) -> int:
    """Return one digest of values by name: numbers, texts, lists of texts, arrays."""
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(values):
        digest.update(json.dumps(name).encode())
        for part in _parts(values[name]):
            digest.update(part)
    return _number(digest)


def _parts(value: Any) -> tuple[bytes, ...]:
    if isinstance(value, np.ndarray) and value.dtype.kind != "U":
        about = json.dumps([value.dtype.newbyteorder("<").str, *value.shape]).encode()
        return about, _canonical(value).tobytes()
    shape = value.shape if isinstance(value, np.ndarray) else ()
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return (json.dumps([*shape, plain]).encode(),)


def _bytes_by_round(array: Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of each row, [rounds, bytes]."""
    if not array.size:
        return np.empty((len(array), 0), np.uint8)
    return np.ascontiguousarray(_canonical(array)).reshape(len(array), -1).view(np.uint8)


def _canonical(array: Array) -> Array:
    """Return the array in the byte order of the file, with one NaN for all."""
    ordered = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype.kind != "f":
        return ordered
    return np.where(np.isnan(ordered), ordered.dtype.type(np.nan), ordered)


def _number(digest: hashlib.blake2b) -> int:
    return int.from_bytes(digest.digest(), "little") or 1
