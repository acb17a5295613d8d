"""MoleculeNet's sets, read from SMILES."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets import smiles
from fedmpi.datasets.family import Family
from fedmpi.datasets.moleculenet import ADDRESS, FOLDER, MOLECULES
from fedmpi.datasets.raw import LabelKind, RawGraphs


class MoleculeNet(Family):
    """The sets of `MOLECULES`."""

    name: ClassVar[str] = "moleculenet"
    title: ClassVar[str] = "MoleculeNet (needs the extra molecules)"
    names: ClassVar[Collection[str]] = MOLECULES
    folder: ClassVar[str] = FOLDER
    upstream: ClassVar[str] = ADDRESS
    columns: ClassVar[tuple[str, ...]] = ("name", "task", "file", "rows", "labels")

    def task(self, name: str) -> LabelKind:
        """Return what the labels of a set are for."""
        return MOLECULES[name].kind

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return task, file and sizes of a set."""
        facts = MOLECULES[name]
        return name, facts.kind, facts.file, facts.rows, facts.num_tasks

    def rows(self, name: str) -> int:
        """Return how many rows the file has."""
        return MOLECULES[name].rows

    def file(self, name: str) -> str:
        """Return the name of the table."""
        return MOLECULES[name].file

    def require(self) -> None:
        """Raise BadInput unless RDKit is installed."""
        smiles.require_rdkit()

    def check(self, path: Path, name: str) -> None:
        """Check that a table begins with the columns that are needed."""
        smiles.check_table(path, MOLECULES[name])

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read a table; see `fedmpi.datasets.smiles.read_molecules`."""
        assert path is not None
        return smiles.read_molecules(path, MOLECULES[name])
