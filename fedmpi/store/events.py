"""The event log `events.jsonl`: one JSON line per thing that happened, enough to rebuild the record."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedmpi.errors import BadInput
from fedmpi.store import exact
from fedmpi.store.schema import (
    SCHEMA_VERSION,
    Array,
    Field,
    axis_sizes,
    measurement_fields,
    num_tasks,
    num_test_graphs,
    result_fields,
)

NAME = "events.jsonl"


@dataclass(frozen=True)
class Start:
    """What is known before the first round."""

    config: dict[str, Any]
    clients: tuple[str, ...]
    rounds: int
    partition: dict[str, Array]
    extra: tuple[Field, ...]
    fedmpi_version: str
    numerics_version: int
    time: str


@dataclass(frozen=True)
class Life:
    """A process (group) that starts or continues the run at `first_round` (0-based)."""

    first_round: int
    ranks: int
    collectives: tuple[str, ...]
    provenance: dict[str, Any]
    time: str


@dataclass(frozen=True)
class Round:
    """All numbers of one finished round (0-based); arrays by field name, without the round axis."""

    round: int
    results: dict[str, Array]
    measurements: dict[str, Array] = field(compare=False)
    time: str


@dataclass(frozen=True)
class Status:
    """A change of the run's status."""

    status: str
    reason: str
    time: str


Event = Start | Life | Round | Status


def to_line(event: Event) -> bytes:
    """Return the event as one line of JSON, exact to the bit."""
    body: dict[str, Any] = {"event": type(event).__name__.lower()}
    match event:
        case Start():
            arrays = {name: _described(array) for name, array in event.partition.items()}
            body |= {**vars(event), "partition": arrays, "extra": [asdict(item) for item in event.extra]}
            body["schema_version"] = SCHEMA_VERSION
        case Round():
            body |= {"round": event.round, "time": event.time}
            for part in ("results", "measurements"):
                body[part] = {name: exact.encode(row) for name, row in getattr(event, part).items()}
        case _:
            body |= vars(event)
    return json.dumps(body, allow_nan=False).encode() + b"\n"


def _described(array: Array) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": exact.encode(array)}


class Decoder:
    """Turns the lines of one log, in their order, back into events: later ones need the sizes of earlier."""

    def __init__(self) -> None:
        self._start: Start | None = None
        self._life: Life | None = None

    def event(self, body: dict[str, Any]) -> Event:
        """Return the event of a parsed line; BadInput for another schema, KeyError if it is foreign."""
        kind = body.pop("event")
        if kind == "start":
            if (version := body.pop("schema_version")) != SCHEMA_VERSION:
                advice = "update fedmpi" if version > SCHEMA_VERSION else "only `report` reads it; start anew"
                raise BadInput(f"written in schema {version}, this fedmpi writes {SCHEMA_VERSION}: {advice}")
            self._start = _start(body)
            return self._start
        if kind == "life":
            self._life = Life(**{**body, "collectives": tuple(body["collectives"])})
            return self._life
        if kind == "status":
            return Status(**body)
        return self._round(body)

    def _round(self, body: dict[str, Any]) -> Round:
        if self._start is None or self._life is None:
            raise KeyError("round before start")
        start, life = self._start, self._life
        known = {**result_fields(start.extra), **measurement_fields(start.extra)}
        counts = num_test_graphs(start.partition), num_tasks(start.partition)
        sizes = axis_sizes(len(start.clients), life.ranks, len(life.collectives), *counts)

        def rows(part: Mapping[str, Any]) -> dict[str, Array]:
            return {
                name: exact.decode(value, known[name].dtype, known[name].shape(sizes))
                for name, value in part.items()
            }

        return Round(body["round"], rows(body["results"]), rows(body["measurements"]), body["time"])


def _start(body: dict[str, Any]) -> Start:
    extra = tuple(Field(**{**item, "axes": tuple(item["axes"])}) for item in body["extra"])
    partition = {
        name: exact.decode(item["data"], item["dtype"], tuple(item["shape"]))
        for name, item in body["partition"].items()
    }
    return Start(**{**body, "clients": tuple(body["clients"]), "extra": extra, "partition": partition})


def read(path: Path) -> list[Event]:
    """Return all events of a log; a last line that was cut off is left out.

    Raises
    ------
    BadInput
        The file is missing, is no event log, or has a bad line before its end.
    """
    decoder = Decoder()
    events: list[Event] = []
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            events.append(decoder.event(json.loads(line)))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{path}: line {number} is not an event of a fedmpi run ({error})") from error
    if not events or not isinstance(events[0], Start):
        raise BadInput(f"{path}: no event of a fedmpi run in it")
    return events


def start_of(log: list[Event]) -> Start:
    """Return the first event of a log that `read` returned."""
    first = log[0]
    assert isinstance(first, Start)
    return first


def begun(path: Path) -> bool:
    """Return whether a log has its first line in full; less is no run yet."""
    try:
        with path.open("rb") as stream:
            return stream.readline().endswith(b"\n")
    except OSError:
        return False


def _whole_lines(path: Path) -> Iterator[bytes]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot read it ({error.strerror})") from error
    yield from content.split(b"\n")[:-1]


class EventLog:
    """An event log open for appending; each event is handed to the system as one whole line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(self._descriptor).st_size
        keep = path.read_bytes().rfind(b"\n") + 1
        if keep < size:  # the line a killed process was writing
            os.ftruncate(self._descriptor, keep)

    def append(self, event: Event) -> None:
        """Add one event.

        Raises
        ------
        OSError
            It could not be written; nothing of it is left in the file.
        """
        line = to_line(event)
        before = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError:
            os.ftruncate(self._descriptor, before)
            raise

    def sync(self) -> None:
        """Return when everything appended so far is on disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
