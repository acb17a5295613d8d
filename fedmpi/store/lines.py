"""Turns the lines of an event log back into events, and refuses a log that no run can have written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, BinaryIO, Literal, Never

import numpy as np
from pydantic import Field as Bound
from pydantic import StringConstraints, TypeAdapter, ValidationError

from fedmpi.errors import BadInput
from fedmpi.store import disk, exact, stored
from fedmpi.store.chain import BrokenChain, Chain
from fedmpi.store.events import Attempt, Event, Round, Start, Status
from fedmpi.store.schema import (
    SCHEMA_VERSION,
    Array,
    Field,
    axis_sizes,
    is_whole,
    measurement_fields,
    result_fields,
)
from fedmpi.store.stored import Stored, Text

MOST_BYTES = 1 << 28
"""Of a line that is no round's; the largest known start, of a million graphs, has 20 MB."""

_BYTES_OF_NUMBER = 32
"""At most: 24 for the digits of a float64, and what separates it from the next."""

_ROUND_BYTES = 1 << 16
"""Of a round's line without its numbers: names and seal."""


class _Array(Stored):
    dtype: Annotated[str, StringConstraints(pattern=r"^[<>=|]?([iu][1248]|f[48]|b1|U\d{1,4})$")]
    shape: Annotated[list[Annotated[int, Bound(ge=0, lt=2**31)]], Bound(max_length=8)]
    data: Any

    def array(self) -> Array:
        return exact.decode(self.data, self.dtype, tuple(self.shape))


class _Line(Stored):
    line: int
    time: Text


class StartLine(_Line):
    """What is known before the first round."""

    event: Literal["start"]
    config: stored.JsonObject
    clients: stored.Clients
    rounds: stored.Rounds
    partition: dict[stored.Name, _Array]
    extra: stored.ExtraFields
    metrics: stored.Metrics
    fedmpi_version: Text
    numerics_version: stored.Version
    schema_version: Literal[4]


class AttemptLine(_Line):
    """A start of the job, the first or a resume."""

    event: Literal["life"]
    time: stored.Stamp
    first_round: stored.Index
    ranks: stored.Ranks
    collectives: stored.Collectives
    provenance: stored.JsonObject


class RoundLine(_Line):
    """A round; its fields are those of the start line."""

    event: Literal["round"]
    round: stored.Index
    results: dict[str, Any]
    measurements: dict[str, Any]


class StatusLine(_Line):
    """A change of the status."""

    event: Literal["status"]
    status: stored.Status
    reason: Text


LINE: TypeAdapter[StartLine | AttemptLine | RoundLine | StatusLine] = TypeAdapter(
    Annotated[StartLine | AttemptLine | RoundLine | StatusLine, Bound(discriminator="event")]
)


class Decoder:
    """Reads the lines of one log in order; each must be consistent with the lines before it.

    Attributes
    ----------
    chain : Chain
        Where the log is after the lines read so far.
    rounds : int
        Rounds in them; one computed twice counts once.
    """

    def __init__(self) -> None:
        self.chain = Chain()
        self.rounds = 0
        self._start: Start | None = None
        self._attempt: Attempt | None = None
        self._next = 0
        self._fields: dict[str, Field] = {}
        self._sizes: dict[str, int] = {}

    @property
    def most_bytes(self) -> int:
        """The longest that the next line can be."""
        numbers = sum(math.prod(field.shape(self._sizes)) for field in self._fields.values())
        return max(MOST_BYTES, _ROUND_BYTES + _BYTES_OF_NUMBER * numbers)

    def event(self, line: bytes) -> Event:
        """Return the event of the next line, given without its end.

        Raises
        ------
        BadInput
            It is of another schema, was changed, or does not belong here.
        """
        self._refuse_other_schema(line)
        try:
            text, after = self.chain.open(line)
            body = LINE.validate_python(_parse(text))
            if body.line != after.lines:
                raise ValueError(f"it says that it is line {body.line}")
            event = self._checked(body)
        except BrokenChain as error:
            raise BadInput(str(error)) from error
        except ValidationError as error:
            raise BadInput(self._foreign(stored.in_words(error))) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise BadInput(self._foreign(str(error))) from error
        self.chain = after
        return event

    def _foreign(self, why: str) -> str:
        return (
            f"line {self.chain.lines + 1} is not an event of a fedmpi run ({why.partition(chr(10))[0][:200]})"
        )

    def _refuse_other_schema(self, line: bytes) -> None:
        """Tell the start of another schema, whose lines are built in another way, from a damaged line."""
        if self.chain.lines:
            return
        try:
            body = _parse(line)
        except (ValueError, RecursionError, MemoryError):
            return
        version = body.get("schema_version") if isinstance(body, dict) else None
        if isinstance(version, int) and version != SCHEMA_VERSION and body.get("event") == "start":
            advice = "update fedmpi" if version > SCHEMA_VERSION else "only `report` reads it; start anew"
            raise BadInput(f"written in schema {version}, this fedmpi writes {SCHEMA_VERSION}: {advice}")

    def _checked(self, body: StartLine | AttemptLine | RoundLine | StatusLine) -> Event:
        match body:
            case StartLine():
                return self._begin(body)
            case AttemptLine():
                return self._begin_attempt(body)
            case RoundLine():
                return self._round(body)
        return self._end(body)

    def _begin(self, body: StartLine) -> Start:
        if self._start is not None:
            raise ValueError("a second start")
        extra = tuple(item.field() for item in body.extra)
        partition = {name: item.array() for name, item in body.partition.items()}
        about = (
            stored.metrics_of(body.metrics, extra),
            body.fedmpi_version,
            body.numerics_version,
            body.time,
        )
        self._start = Start(body.config, tuple(body.clients), body.rounds, partition, extra, *about)
        _check_pointers(partition)
        return self._start

    def _begun(self) -> Start:
        if self._start is None:
            raise ValueError("it comes before the start")
        return self._start

    def _begin_attempt(self, body: AttemptLine) -> Attempt:
        start = self._begun()
        if body.first_round > self.rounds:
            raise ValueError(
                f"it goes on at round {body.first_round + 1}, but there are {self.rounds} before it"
            )
        self._next = body.first_round
        self._attempt = Attempt(
            body.first_round, body.ranks, tuple(body.collectives), body.provenance, body.time
        )
        self._sizes = axis_sizes(len(start.clients), body.ranks, len(body.collectives), start.partition)
        self._fields = {**result_fields(start.extra), **measurement_fields(start.extra)}
        return self._attempt

    def _round(self, body: RoundLine) -> Round:
        start = self._begun()
        if self._attempt is None:
            raise ValueError("a round before the first attempt")
        if body.round != self._next or body.round >= start.rounds:
            raise ValueError(f"it is of round {body.round + 1}, expected round {self._next + 1}")
        results, measured = result_fields(start.extra), measurement_fields(start.extra)
        if missing := results.keys() - body.results.keys():
            raise ValueError(f"{', '.join(sorted(missing))}: not in the results")
        rows = self._rows(body.results, results), self._rows(body.measurements, measured)
        self._next += 1
        self.rounds = max(self.rounds, self._next)
        return Round(body.round, rows[0], {**rows[1], **self._unwritten(measured, rows[1])}, body.time)

    def _unwritten(self, fields: Mapping[str, Field], written: Mapping[str, Array]) -> dict[str, Array]:
        """Return what stands for measurements that a line leaves out; it takes no memory."""
        return {
            name: np.broadcast_to(field.blank(()), field.shape(self._sizes))
            for name, field in fields.items()
            if name not in written
        }

    def _rows(self, given: Mapping[str, Any], known: Mapping[str, Field]) -> dict[str, Array]:
        rows = {}
        for name, value in given.items():
            if name not in known:
                raise ValueError(f"{name}: no field of this run")
            try:
                rows[name] = exact.decode(value, known[name].dtype, known[name].shape(self._sizes))
                known[name].check(rows[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return rows

    def _end(self, body: StatusLine) -> Status:
        start = self._begun()
        if body.status == "complete" and not is_whole(start.config, self.rounds, start.rounds):
            raise ValueError(f"complete after {self.rounds} of {start.rounds} rounds")
        return Status(body.status, body.reason, body.time)


def _check_pointers(partition: Mapping[str, Array]) -> None:
    """Refuse a partition without a valid number of test graphs, on which the length of rows depends."""
    pointers = partition.get("test_ptr", np.zeros(1, np.int64))
    if pointers.ndim != 1 or pointers.dtype.kind not in "iu" or not 0 <= int(pointers[-1:].sum()) < 2**31:
        raise ValueError("partition.test_ptr: no pointers into the test graphs")
    if partition.get("task_names", np.zeros(0, "U1")).ndim != 1:
        raise ValueError("partition.task_names: no list of names")


def read(path: Path) -> list[Event]:
    """Return all events of a log; a last line that was cut off is left out.

    Raises
    ------
    BadInput
        The file is missing, is no event log, or has a bad line before its end.
    """
    decoder, events = Decoder(), list[Event]()
    try:
        _read_into(events, path, decoder)
    except OSError as error:
        raise BadInput(f"{path}: cannot read it ({error.strerror}){_repair_hint(path)}") from error
    except BadInput as error:
        rounds = f"; {decoder.rounds} rounds before it are whole" if events else ""
        raise BadInput(f"{path}: {error}{rounds}{_repair_hint(path)}") from error
    if not events:
        raise BadInput(f"{path}: no event of a fedmpi run in it{_repair_hint(path)}")
    return events


def whole_part(path: Path) -> list[Event]:
    """Return the events of a log up to its first damage; none where there is no log."""
    events = list[Event]()
    with suppress(OSError, BadInput):
        _read_into(events, path, Decoder())
    return events


def _read_into(events: list[Event], path: Path, decoder: Decoder) -> None:
    with disk.open_plain(path) as stream:
        for line in whole_lines(stream, decoder):
            events.append(decoder.event(line))


def _repair_hint(path: Path) -> str:
    """Return the advice that repairs the log, where the record is there to repair it from."""
    if not any((path.parent / name).is_file() for name in ("run.h5", path.name)):
        return ""
    return f"; what can be recovered is: fedmpi records repair {quote(str(path.parent))}"


def whole_lines(stream: BinaryIO, decoder: Decoder) -> Iterator[bytes]:
    """Yield the next lines of a log without their ends, up to one that has none yet.

    Raises
    ------
    BadInput
        A line is longer than any that a run writes.
    """
    while line := stream.readline(most := decoder.most_bytes + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) >= most:
            number = decoder.chain.lines + 1
            raise BadInput(f"line {number} is not an event of a fedmpi run (longer than {most - 1} bytes)")
        else:
            return


def _parse(text: bytes) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")
