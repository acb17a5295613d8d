"""TensorBoard event files.

An event file is a TFRecord file of protocol-buffer messages `Event`: of these only a wall time, a step and
scalar values are written here, by hand, so that no TensorFlow is needed. Each record is its length, a masked
CRC-32C of the length, the message, and a masked CRC-32C of the message (TensorFlow's `record_writer.cc` and
`event.proto`, `summary.proto` define this).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedmpi.analysis.costs import round_ends
from fedmpi.clock import seconds_of
from fedmpi.metrics.clients import mean_by_round
from fedmpi.store import disk
from fedmpi.store.reader import Run

_LOSSES = ("test_loss", "val_loss", "train_loss")
_CLIENTS = ("train_loss", "gradient_norm", "group")
_PARTS = ("test", "val", "train")
_TIMES = ("round_seconds", "virtual_seconds")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of protocol buffers."""

Scalar = tuple[str, int, float, float]
"""Tag, step, wall time, value."""


def write(run: Run, folder: Path) -> Path:
    """Write a run's scalars into `folder`, which is the run's alone, and return the file.

    Steps are rounds counted from 1. Tags are ``mean/NAME`` (over clients), ``clients/NAME/FIELD``,
    ``time/NAME``, ``clusters``, and ``score/NAME`` of metrics that are one value of all clients.

    Raises
    ------
    OSError
        It cannot be written.
    """
    begun = seconds_of(run.attempts[0].started) if run.attempts else 0.0
    target = folder / f"events.out.tfevents.{int(begun)}.fedmpi"
    version = _double(1, begun) + _bytes(3, b"brain.Event:2")
    events = (_record(_event(*each)) for each in scalars(run))
    disk.write_whole(target, b"".join((_record(version), *events)))
    return target


def scalars(run: Run) -> Iterator[Scalar]:
    """Yield all scalars, round by round; what is NaN was not evaluated and is left out."""
    curves = {f"time/{name}": run.measured(name) for name in _TIMES} if run.attempts else {}
    curves |= {tag: mean_by_round(run.results[name]) for tag, name in _of_all(run).items()}
    curves["clusters"] = np.array([len(np.unique(group)) for group in run.results["group"]])
    by_client = _of_clients(run)
    for place, client in enumerate(run.clients):
        curves |= {f"clients/{client}/{tag}": run.results[name][:, place] for tag, name in by_client.items()}
    for number, time in enumerate(round_ends(run)):
        for tag, values in curves.items():
            if not math.isnan(value := float(values[number])):
                yield tag, number + 1, float(time), value


def _of_all(run: Run) -> dict[str, str]:
    """Return the fields that stand for a whole round, by tag: means over clients, and scores of all."""
    found = {f"mean/{name}": name for name in _LOSSES if name in run.results}
    for metric in run.metrics:
        kind, parts = ("mean", _PARTS) if metric.scope == "client" else ("score", _PARTS[:2])
        names = dict.fromkeys(metric.field(part) for part in parts)
        found |= {f"{kind}/{name}": name for name in names if name in run.results}
    return found


def _of_clients(run: Run) -> dict[str, str]:
    """Return the fields by client, by tag."""
    found = {name: name for name in _CLIENTS if run.results[name].ndim > 1}
    for metric in run.metrics:
        for name in dict.fromkeys(metric.field(part) for part in _PARTS[:2]):
            stored = name if metric.scope == "client" else f"client_{name}"
            found |= {name: stored} if stored in run.results else {}
    return found


def _event(tag: str, step: int, time: float, value: float) -> bytes:
    scalar = _bytes(1, tag.encode()) + _key(2, _FIXED32) + struct.pack("<f", value)
    return _double(1, time) + _key(2, _VARINT) + _varint(step) + _bytes(5, _bytes(1, scalar))


def _record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + _masked(length) + message + _masked(message)


def _masked(data: bytes) -> bytes:
    """Return the checksum of TFRecord: CRC-32C turned right by 15 bits, plus a constant."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _double(field: int, value: float) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _of_byte(byte: int) -> int:
    """Return the CRC-32C of a byte (Castagnoli's polynomial, bits reversed)."""
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_TABLE = [_of_byte(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
