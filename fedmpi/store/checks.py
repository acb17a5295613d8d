"""Checks of a record before it is used: names, types and sizes of its schema, and its digests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field as Bound
from pydantic import StringConstraints, TypeAdapter

from fedmpi.metrics.metric import Metric
from fedmpi.store import digests, old_schema, stored
from fedmpi.store.plain import Damaged, Dataset, Tree
from fedmpi.store.schema import Array, Field
from fedmpi.store.stored import Stored, Text

SEALED = 3
"""The first schema whose records have digests."""

_EXTRA = TypeAdapter(stored.ExtraFields)
_METRICS = TypeAdapter(stored.Metrics)


class Header(Stored):
    """Attributes of the root."""

    schema_version: stored.Version
    fedmpi_version: Text
    numerics_version: stored.Version
    config_digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    rounds: stored.Rounds
    created: Text
    extra_fields: Annotated[str, StringConstraints(max_length=1 << 20)]
    metrics: Annotated[str, StringConstraints(max_length=1 << 20)] | None = None

    def extra(self) -> tuple[Field, ...]:
        """Return the fields beyond the schema's; before schema 4 also those that every run had."""
        extra = tuple(item.field() for item in _EXTRA.validate_python(json.loads(self.extra_fields)))
        return extra if self.schema_version >= old_schema.SAYS_METRICS else (*old_schema.FIELDS, *extra)

    def judged_by(self) -> tuple[Metric, ...]:
        """Return the metrics of the run, the headline first."""
        if self.schema_version < old_schema.SAYS_METRICS:
            return old_schema.metrics_of({field.name for field in self.extra()})
        listed = _METRICS.validate_python(json.loads(self.metrics or ""))
        try:
            return stored.metrics_of(listed, self.extra())
        except ValueError as error:
            raise Damaged(str(error)) from error


class AttemptHeader(Stored):
    """Attributes of an attempt's group."""

    first_round: stored.Index
    ranks: stored.Ranks
    started: stored.Stamp
    collectives: Annotated[list[Text], Bound(max_length=stored.MOST_FIELDS)]


class Seals:
    """Verifies the content of a record; `group` is "" for the file, else an attempt's path.

    Of a schema without digests names and numbers cannot be verified.

    Parameters
    ----------
    tree : Tree
    rounds : int
        Planned.
    sealed : bool
        Whether the record has digests.
    """

    def __init__(self, tree: Tree, rounds: int, *, sealed: bool) -> None:
        self._tree, self._rounds, self._sealed = tree, rounds, sealed

    def _dataset(self, group: str, name: str) -> Dataset:
        return self._tree.datasets[_path(group, name)]

    def check_names(self, group: str, expected: Mapping[str, Array]) -> None:
        """Refuse datasets that are missing, unknown, or of another type or size."""
        there = self._tree.below(group) if group else self._tree.datasets
        mine = {path: each for path, each in there.items() if group or not path.startswith(_FREE)}
        for path in sorted(expected.keys() ^ mine.keys()) if self._sealed else ():
            raise Damaged(f"/{_path(group, path)}: {'missing' if path in expected else 'unknown'}")
        check_types(group, {path: each for path, each in mine.items() if path in expected}, expected)

    def text(self, group: str, name: str) -> str:
        """Return a text that changes while the run goes on.

        One of its two digests fits; a killed writer leaves the digests unequal.
        """
        content = self._dataset(group, name).text()
        if self._sealed:
            slots = self._dataset(group, f"digests/{name}_now_and_before").read()
            if digests.of_text(content.encode()) not in slots.tolist():
                raise Damaged(f"/{_path(group, name)} is not what was written")
        return content

    def whole_rounds(self, group: str, rows: str, count: int) -> int:
        """Return how many rounds are whole: they have digests; `count`, stored later, is not larger."""
        if not self._sealed:
            if not 0 <= count <= self._rounds:
                raise Damaged(f"/{group}: {count} of {self._rounds} rounds")
            return count
        stored_digests = self._dataset(group, rows)
        blank = np.flatnonzero(stored_digests.read() == digests.BLANK)
        whole = int(blank[0]) if len(blank) else stored_digests.shape[0]
        if not 0 <= count <= whole:
            raise Damaged(f"/{group}: it counts {count} rounds, but {whole} have digests")
        return whole

    def check_rounds(self, group: str, rows: str, first: int, arrays: Mapping[str, Array]) -> None:
        """Refuse rounds whose numbers do not fit their digests.

        Parameters
        ----------
        group : str
            "" for the rounds of the file, else the path of a group of measurements.
        rows : str
            Name of the dataset with the rounds' digests, below `group`.
        first : int
            The first of the rounds, 0-based.
        arrays : mapping of str to array [rounds, ...]
            The fields of these rounds by name.
        """
        if not self._sealed:
            return
        found = digests.of_rounds(first, arrays)
        wrong = np.flatnonzero(found != self._dataset(group, rows).read(len(found)))
        if len(wrong):
            place = group or "rounds"
            raise Damaged(f"/{place}: round {first + int(wrong[0]) + 1} is not what was written")

    def check_rest(self, group: str, values: Mapping[str, Any]) -> None:
        """Refuse anything else that does not fit its one digest."""
        if self._sealed and digests.of_values(values) != self._dataset(group, "digests/rest").integer():
            what = "attributes or provenance" if group else "attributes, configuration, clients or partition"
            raise Damaged(f"/{group}: {what} are not what was written")


_FREE = ("partition/", "lives/")
"""Groups whose datasets have no fixed names."""


def _path(group: str, name: str) -> str:
    return f"{group}/{name}" if group else name


def check_types(group: str, found: Mapping[str, Dataset], expected: Mapping[str, Array]) -> None:
    """Refuse datasets of another type or size, before any of them is read."""
    for path, each in found.items():
        dtype, shape = expected[path].dtype, expected[path].shape
        fits = each.dtype.kind in "SO" if dtype.kind == "S" else each.dtype == dtype
        if not fits or each.shape != shape:
            raise Damaged(
                f"/{_path(group, path)} is of type {each.dtype} and shape {list(each.shape)}, "
                f"expected {'text' if dtype.kind == 'S' else dtype} and {list(shape)}"
            )
