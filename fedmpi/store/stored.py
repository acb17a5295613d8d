"""What may stand in a stored run: bounds of texts, numbers and fields, whichever file they are read from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from fedmpi.metrics.metric import Metric
from fedmpi.store import schema

MOST_ROUNDS = 1_000_000
MOST_CLIENTS = 10_000_000
MOST_RANKS = 10_000_000
MOST_FIELDS = 1000
_DEPTH = 32
_LONGEST_INTEGER = 2**64


def _text(value: str) -> str:
    """Refuse what no file can hold: NUL ends a text in HDF5, and half a surrogate pair has no bytes."""
    if "\0" in value:
        raise ValueError("a NUL in a text")
    value.encode()
    return value


def _plain(value: Any, depth: int = 0) -> Any:
    """Refuse JSON that is nested without end, or has numbers that only Python can hold."""
    if depth > _DEPTH:
        raise ValueError(f"nested deeper than {_DEPTH}")
    match value:
        case dict():
            for key, item in value.items():
                _text(key)
                _plain(item, depth + 1)
        case list():
            for item in value:
                _plain(item, depth + 1)
        case str():
            _text(value)
        case int() if abs(value) > _LONGEST_INTEGER:
            raise ValueError("an integer above 2^64")
        case float() if not math.isfinite(value):
            raise ValueError("a number that is not finite")
    return value


def _stamp(value: str) -> str:
    """Refuse what is no time of day in UTC."""
    datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
    return value


Text = Annotated[str, StringConstraints(max_length=65536), AfterValidator(_text)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_text)]
Stamp = Annotated[str, AfterValidator(_stamp)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_plain)]
Rounds = Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
Ranks = Annotated[int, Field(ge=0, le=MOST_RANKS)]
Index = Annotated[int, Field(ge=0, le=MOST_ROUNDS)]
Version = Annotated[int, Field(ge=0, lt=2**31)]
Clients = Annotated[list[Name], Field(min_length=1, max_length=MOST_CLIENTS)]
Collectives = Annotated[list[Name], Field(max_length=MOST_FIELDS)]
Status = Literal["running", "complete", "interrupted", "diverged", "failed"]


class Stored(BaseModel):
    """Base of what is read from a run's files: nothing is converted, nothing unknown is passed over."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class StoredField(Stored):
    """A field beyond the schema's, as `schema.Field` in JSON."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
    axes: Annotated[
        list[Literal["round", "client", "rank", "phase", "collective", "example", "task"]],
        Field(min_length=1, max_length=8),
    ]
    dtype: Annotated[str, StringConstraints(pattern=r"^([iu][1248]|f[48]|u?int(8|16|32|64)|float(32|64))$")]
    unit: Text
    meaning: Text
    kind: Literal["result", "measurement"]
    better: Literal["higher", "lower"] | None

    @field_validator("axes")
    @classmethod
    def _rounds_first(cls, axes: list[str]) -> list[str]:
        if axes[0] != "round" or "round" in axes[1:]:
            raise ValueError("the first axis, and no other, is the round")
        return axes

    def field(self) -> schema.Field:
        """Return it as the schema has it."""
        return schema.Field(**{**self.model_dump(), "axes": tuple(self.axes)})


class StoredMetric(Stored):
    """A metric, as `Metric.plain` gives it."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,99}$")]
    title: Name
    better: Literal["higher", "lower"]
    scope: Literal["client", "pooled", "all"]
    unit: Text
    low: float | None
    high: float | None
    percent: bool
    constant: float | None
    meaning: Text

    def metric(self) -> Metric:
        """Return it as the table has it."""
        return Metric.of_plain(self.model_dump())


Metrics = Annotated[list[StoredMetric], Field(min_length=1, max_length=MOST_FIELDS)]
ExtraFields = Annotated[list[StoredField], Field(max_length=MOST_FIELDS)]


def metrics_of(listed: Iterable[StoredMetric], fields: Iterable[schema.Field]) -> tuple[Metric, ...]:
    """Return the metrics of a run that has these fields beyond the schema's.

    Raises
    ------
    ValueError
        One has no field on validation or test examples, or one of another shape.
    """
    axes = {field.name: field.axes for field in fields if field.dtype in ("f8", "float64")}
    metrics = tuple(item.metric() for item in listed)
    for metric in metrics:
        wanted = ("round", "client") if metric.scope == "client" else ("round",)
        for name in (metric.field("val"), metric.field("test")):
            if axes.get(name) != wanted:
                raise ValueError(f"metric {metric.name}: no field {name} (f8) by {' and '.join(wanted)}")
    return metrics


_JSON_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(JsonObject)


def parse_object(text: str) -> dict[str, Any]:
    """Return a JSON object that a file holds as text.

    Raises
    ------
    ValueError
        It is none, or none of bounded depth and numbers.
    """
    return _JSON_OBJECT.validate_python(json.loads(text))


def in_words(error: ValidationError) -> str:
    """Return the first thing that a model refused, in a line."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(re.sub(r"\s+", " ", str(part))[:60] for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]
