"""Files of one's own: a table of molecules."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from fedmpi.datasets import smiles
from fedmpi.datasets.molecule_tables import Columns, columns_of, read_molecules, read_table
from fedmpi.datasets.own import ASK, OwnData
from fedmpi.datasets.raw import LabelKind, RawGraphs


class OwnMolecules(OwnData):
    """A table of molecules: ``./mine.csv`` with the columns ``smiles`` and ``label``."""

    name = "own-molecules"
    endings = (".csv", ".csv.gz")
    scaffolds = True

    def task(self, name: str) -> LabelKind:
        """Return what the labels are for, as the file says."""
        path = self.path(name)
        if not path.is_file():
            self.refuse_missing(name)
        status = path.stat()
        return _kind(path, _columns(name), (status.st_size, status.st_mtime_ns))

    def require(self) -> None:
        """Raise BadInput unless RDKit is installed."""
        smiles.require_rdkit()

    def check(self, path: Path, name: str) -> None:
        """Check all that can be checked without RDKit."""
        read_table(path, _columns(name))

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read a table; see `fedmpi.datasets.molecule_tables.read_molecules`."""
        return read_molecules(path, _columns(name), name)


def _columns(name: str) -> Columns:
    path, _, said = name.partition(ASK)
    return columns_of(said, path)


@lru_cache(maxsize=64)
def _kind(path: Path, columns: Columns, state: tuple[int, int]) -> LabelKind:
    """Return the kind of a file's labels; the state is of its content."""
    return read_table(path, columns).labels.kind
