"""The datasets of a case, in member order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedmpi.datasets.egos import ego_networks
from fedmpi.datasets.family import FAMILIES, Family
from fedmpi.datasets.names import family_of, members
from fedmpi.datasets.networks import in_both_directions
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tables import DatasetFacts


def options_class(table: Mapping[str, Any]) -> type[DatasetOptions]:
    """Return the options class of a suite's `dataset` table: the family may bring its own."""
    name = table.get("name")
    own = family_of(members(name)[0]).Options if isinstance(name, str) and name else None
    return own or DatasetOptions


def load_all(options: DatasetOptions, source: DataSource) -> tuple[RawGraphs, ...]:
    """Return every dataset behind the options' name: members in order, or one per generated domain.

    Raises
    ------
    BadInput
        A dataset is not prepared (`DataSource.prepare` does that, once per machine).
    """
    raws: list[RawGraphs] = []
    for family, one in _each(options):
        with FAMILIES.guarded(type(family)):
            raws += [source.load(one.name)] if family.prepared else family.generate(one)
    if options.egos is not None:
        raws = [ego_networks(raw, options.egos) for raw in raws]
    return tuple(map(in_both_directions, raws) if options.both_directions else raws)


def num_datasets(options: DatasetOptions) -> int:
    """Return how many datasets `load_all` returns."""
    return sum(family.count(one) for family, one in _each(options))


def sizes_of(options: DatasetOptions) -> list[DatasetFacts]:
    """Return the sizes of these datasets; none where one is not known before it is read."""
    found = [family.sizes(one) for family, one in _each(options)]
    return [facts for each in found for facts in each] if all(found) else []


def digest_of(raw: RawGraphs, options: DatasetOptions, source: DataSource) -> str:
    """Return the digest of one of these datasets: noted when it was prepared, or computed now."""
    return source.digest_of(raw.name) if raw.name in source.members(options.name) else digest(raw)


def _each(options: DatasetOptions) -> Iterator[tuple[Family, DatasetOptions]]:
    """Yield the family of each member, and the options with its name alone."""
    for member in members(options.name):
        yield family_of(member), options.model_copy(update={"name": member})
