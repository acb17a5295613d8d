"""``fedmpi data``: list, fetch, verify."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from fedmpi.cli.options import Cache, Mirror, Plugin
from fedmpi.cli.terminal import say, show
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.names import families, family_of
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import check_suite
from fedmpi.tables.table import Table, listed

Names = Annotated[list[str], typer.Argument(help="Datasets, groups or suites.")]


def list_(mirror: Mirror = None, data: Cache = None, plugin: Plugin = None) -> int:
    """List the known datasets and groups, and whether they are at hand.

    Examples
    --------
    fedmpi data list
    """
    source, every = DataSource.from_environment(data, mirror), families()
    for family in every:
        if family.names and family.prepared:
            columns = listed([*family.columns, "at hand"], wrapped=["at hand"])
            rows = [(*family.row(name), source.status(name)) for name in family.names]
            show(Table(columns, rows, family.title or family.name))
    groups = [(name, " ".join(members)) for family in every for name, members in family.groups.items()]
    columns = listed(["name", "datasets"], wrapped=["datasets"])
    generated = [f"{name} (generated)" for family in every if not family.prepared for name in family.names]
    return show(
        Table(columns, groups, "Groups: one client per dataset"),
        f"Also: {', '.join(generated)}, any other TU name, own folders and files (./mine.csv); fetch takes "
        f"suites too. Prepared ones are in {source.cache}.",
    )


def fetch(names: Names, mirror: Mirror = None, data: Cache = None, plugin: Plugin = None) -> int:
    """Download (or take from the mirror), check and prepare datasets: on a cluster, on the login node.

    Examples
    --------
    fedmpi data fetch PROTEINS gcfl/table3
    """
    source = DataSource.from_environment(data, mirror)
    for member in _members(names, source):
        source.check(member)
        source.prepare(member)
        say(f"{member}: prepared, digest {source.digest_of(member)[:16]}")
        for line in source.remarks_of(member):
            say(f"  {line}")
        if refused := source.refused_of(member):
            say(f"{member}: left out of its file ({len(refused)}):")
        for line in refused:
            say(f"  {line}")
    return 0


def verify(names: Names, data: Cache = None, plugin: Plugin = None) -> int:
    """Compute the content digests of prepared datasets anew and compare them.

    Examples
    --------
    fedmpi data verify PROTEINS
    """
    source = DataSource.from_environment(data)
    for member in _members(names, source):
        say(f"{member}: ok, {_checked(member, source)}")
    return 0


def _checked(name: str, source: DataSource) -> str:
    """Verify one prepared dataset and return what was looked at."""
    found = source.verify(name)
    raw, family = source.load(name), family_of(name)
    known = "and the known one" if family.digest(name) else "(no other is known of this dataset)"
    rows = f", all {family.rows(name):,} rows of its file accounted for" if family.rows(name) else ""
    sizes = f"{raw.num_graphs:,} graphs, {raw.topology.num_nodes:,} nodes, {raw.topology.num_edges:,} edges"
    return f"{sizes}{rows}; content has the digest noted {known}: {found}"


def _members(names: Sequence[str], source: DataSource) -> Iterator[str]:
    """Yield the datasets meant, those of groups and of the cases of suites too."""
    known = {name for family in families() for name in (*family.names, *family.groups)}
    asked: list[str] = []
    for name in names:
        is_suite = name not in known and (name.endswith(".toml") or name in locations.bundled())
        cases = check_suite(read(locations.find(name))) if is_suite else []
        asked += [checked.case.dataset.name for checked in cases] if is_suite else [name]
    for name in dict.fromkeys(asked):
        yield from source.members(name)
