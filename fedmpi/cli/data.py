"""``fedmpi data``: list, fetch, verify."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.table import Table

from fedmpi.cli.terminal import console
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
    table = Table(title=f"Datasets (prepared ones in {source.cache})", title_justify="left")
    for heading in ("name", "graphs", "classes", "nodes", "edges", "labels", "attributes", "at hand"):
        justify: Literal["left", "right"] = "left" if heading in ("name", "at hand") else "right"
        table.add_column(heading, justify=justify, no_wrap=heading == "name")
    for name, facts in KNOWN.items():
        numbers = (facts.graphs, facts.classes, facts.nodes, facts.directed_edges)
        widths = (facts.label_width, facts.attribute_width)
        table.add_row(name, *(str(number) for number in (*numbers, *widths)), source.status(name))
    molecules = Table(title="MoleculeNet (needs the extra molecules)", title_justify="left")
    for heading in ("name", "rows", "labels", "task", "file", "at hand"):
        molecules.add_column(heading, justify="right" if heading in ("rows", "labels") else "left")
    for name, chemical in MOLECULES.items():
        counts = (str(chemical.rows), str(chemical.num_tasks))
        molecules.add_row(name, *counts, chemical.kind, chemical.file, source.status(name))
    groups = Table(title="Groups: one client per dataset", title_justify="left")
    groups.add_column("name", no_wrap=True)
    groups.add_column("datasets")
    for name, members in GROUPS.items():
        groups.add_row(name, " ".join(members))
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
            print(f"{member}: prepared, digest {source.digest_of(member)[:16]}", flush=True)
            for line in _refusals(member, source.refused_of(member)):
                print(line, flush=True)
    return 0


def _refusals(name: str, refused: Sequence[str]) -> list[str]:
    """Return the lines that count and name what a dataset's files hold and the dataset leaves out."""
    return [f"{name}: {len(refused)} rows left out", *(f"  {line}" for line in refused)] if refused else []


def verify(names: Sequence[str], cache: Path | None) -> int:
    """Recompute digests of prepared datasets."""
    source = DataSource.from_environment(cache)
    for name in _datasets(names):
        for member in source.members(name):
            print(f"{member}: {source.verify(member)}")
    return 0


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
