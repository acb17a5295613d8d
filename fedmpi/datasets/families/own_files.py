"""Files of one's own: a table of molecules, a list of graphs, a graph whose nodes have labels."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from fedmpi.datasets import graph_files, smiles
from fedmpi.datasets.inert_torch import holds_list
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.molecule_tables import columns_of, read_molecules, read_table
from fedmpi.datasets.own import OwnData, task_of
from fedmpi.datasets.raw import RawGraphs


class OwnMolecules(OwnData):
    """Molecules: ``./mine.csv`` or ``./mine.parquet`` with columns smiles and label, or ``./mine.sdf``."""

    name = "own-molecules"
    endings = (".csv", ".csv.gz", ".parquet", ".sdf", ".sdf.gz")
    scaffolds = True

    def require(self) -> None:
        """Raise BadInput unless RDKit is installed."""
        smiles.require_rdkit()

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of a table."""
        return read_table(path, columns_of(name)).labels

    def weighted(self, name: str) -> bool:
        """Return whether a table has a column of weights."""
        return _is_weighted(self.path(name), name, self.state(name))

    def check(self, path: Path, name: str) -> None:
        """Check all that can be checked without RDKit."""
        read_table(path, columns_of(name))

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read a table; see `fedmpi.datasets.molecule_tables.read_molecules`."""
        return read_molecules(path, columns_of(name), name)


class OwnGraphs(OwnData):
    """A list of torch-geometric's `Data`, saved by ``torch.save``: ``./mine.pt``."""

    name = "own-graphs"
    endings = (".pt",)

    def takes(self, name: str) -> bool:
        """Return whether a name is the path of a list of graphs, or of no file at all."""
        return super().takes(name) and (self.locate(name, None) is None or self._holds_list(name))

    def _holds_list(self, name: str) -> bool:
        return _is_list(self.path(name), self.state(name))

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of the graphs."""
        return graph_files.graph_labels(path, task_of(name))

    def check(self, path: Path, name: str) -> None:
        """Check all of a file."""
        self.read(path, name)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read a list; see `fedmpi.datasets.graph_files.read_graphs`."""
        return graph_files.read_graphs(path, task_of(name), name)


class OwnNetwork(OwnGraphs):
    """One of torch-geometric's `Data`, whose nodes have labels: ``./mine.pt``."""

    name = "own-network"
    examples = "node"

    def takes(self, name: str) -> bool:
        """Return whether a name is the path of a file that holds no list."""
        return not super().takes(name) and super(OwnGraphs, self).takes(name)

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of the nodes."""
        return graph_files.node_labels(path, task_of(name))

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read a graph; see `fedmpi.datasets.graph_files.read_network`."""
        return graph_files.read_network(path, task_of(name), name)


@lru_cache(maxsize=64)
def _is_weighted(path: Path, name: str, state: tuple[tuple[int, int], ...]) -> bool:
    return read_table(path, columns_of(name)).weights is not None


@lru_cache(maxsize=64)
def _is_list(path: Path, state: tuple[tuple[int, int], ...]) -> bool:
    return holds_list(path)
