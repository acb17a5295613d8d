"""``fedmpi data``: list, fetch, verify."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fedmpi.cli.plain_table import PlainTable
from fedmpi.cli.terminal import console, say
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.moleculenet import MOLECULES
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tables import GROUPS, KNOWN
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite


def show(cache: Path | None, mirror: Path | None) -> int:
    """Print the known datasets and groups."""
    source = DataSource.from_environment(cache, mirror)
    cells = ("name", "graphs", "classes", "nodes", "edges", "labels", "attributes", "at hand")
    table = PlainTable(f"Datasets (prepared ones in {source.cache})", cells, 1, wrapped=("at hand",))
    for name, facts in KNOWN.items():
        numbers = (facts.graphs, facts.classes, facts.nodes, facts.directed_edges)
        table.add_line(name, *numbers, facts.label_width, facts.attribute_width, source.status(name))
    headings = ("name", "task", "file", "rows", "labels", "at hand")
    molecules = PlainTable("MoleculeNet (needs the extra molecules)", headings, 3, wrapped=("at hand",))
    for name, chemical in MOLECULES.items():
        counts = (chemical.rows, chemical.num_tasks)
        molecules.add_line(name, chemical.kind, chemical.file, *counts, source.status(name))
    groups = PlainTable("Groups: one client per dataset", ("name", "datasets"), 1, wrapped=("datasets",))
    for name, members in GROUPS.items():
        groups.add_line(name, " ".join(members))
    screen = console(sys.stdout)
    screen.print(table)
    screen.print(molecules)
    screen.print(groups)
    screen.print(
        "Also: synthetic (generated), any other TU name, own folders in TU format; fetch takes suites too."
    )
    return 0


def fetch(names: Sequence[str], cache: Path | None, mirror: Path | None) -> int:
    """Prepare datasets, groups, or all that suites need."""
    source = DataSource.from_environment(cache, mirror)
    for name in _datasets(names):
        for member in source.members(name):
            source.check(member)
            source.prepare(member)
            say(f"{member}: prepared, digest {source.digest_of(member)[:16]}")
            for line in _refusals(member, source.refused_of(member)):
                say(line)
    return 0


def _refusals(name: str, refused: Sequence[str]) -> list[str]:
    """Return the lines that count and name what a dataset's files hold and the dataset leaves out."""
    return [f"{name}: {len(refused)} rows left out", *(f"  {line}" for line in refused)] if refused else []


def verify(names: Sequence[str], cache: Path | None) -> int:
    """Recompute digests of prepared datasets; say of each what was checked."""
    source = DataSource.from_environment(cache)
    for name in _datasets(names):
        for member in source.members(name):
            say(f"{member}: ok, {_checked(member, source)}")
    return 0


def _checked(name: str, source: DataSource) -> str:
    """Verify one prepared dataset and return what was looked at."""
    found = source.verify(name)
    raw = source.load(name)
    known = "and the known one" if name in KNOWN else "(no other is known of this dataset)"
    rows = f", all {MOLECULES[name].rows:,} rows of its file accounted for" if name in MOLECULES else ""
    sizes = f"{raw.num_graphs:,} graphs, {raw.topology.num_nodes:,} nodes, {raw.topology.num_edges:,} edges"
    return f"{sizes}{rows}; content has the digest noted {known}: {found}"


def _datasets(names: Sequence[str]) -> list[str]:
    """Return the dataset names meant: suites stand for the datasets of their cases."""
    found: dict[str, None] = {}
    for name in names:
        if name in (*KNOWN, *MOLECULES, *GROUPS) or not (
            name.endswith(".toml") or name in locations.bundled()
        ):
            found[name] = None
            continue
        for checked in check_suite(read(locations.find(name))):
            found[checked.case.dataset.name] = None
    if not found:
        raise BadInput("name at least one dataset, group or suite")
    return list(found)
