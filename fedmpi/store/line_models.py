"""What the lines of an event log may hold: of each kind its fields, exactly, with bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field as Bound
from pydantic import StringConstraints, TypeAdapter

from fedmpi.store import exact, stored
from fedmpi.store.schema import Array
from fedmpi.store.stored import Stored, Text


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
