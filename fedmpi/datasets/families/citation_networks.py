"""Citation and co-author networks in ``.npz`` files: nodes with words, one class each.

Read as PyTorch Geometric's `CitationFull` and `Coauthor` do: edges in both directions without self-loops
and duplicates, every positive feature set to 1. Sources: Bojchevski and Günnemann, "Deep Gaussian
Embedding of Graphs" (ICLR 2018); Shchur et al., "Pitfalls of Graph Neural Network Evaluation" (2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.archives import opened, read_arrays, whole_numbers
from fedmpi.datasets.family import Family
from fedmpi.datasets.networks import csr_places, refuse_other_sizes, rows_of_ones, undirected
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DatasetFacts, by_name
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import SparseRows

_ARRAYS = (
    *("adj_indices", "adj_indptr", "adj_shape"),
    *("attr_data", "attr_indices", "attr_indptr", "attr_shape", "labels"),
)


def check_network(path: Path) -> None:
    """Check, without unpacking, that a file holds the arrays needed; see `opened`."""
    with opened(path, [f"{name}.npy" for name in _ARRAYS]):
        pass


def read_network(path: Path, facts: DatasetFacts) -> RawGraphs:
    """Read a network: one graph, every node an example.

    Parameters
    ----------
    path : Path
        Archive of the arrays ``adj_*`` and ``attr_*`` (CSR) and ``labels``.
    facts : DatasetFacts
        Sizes that it must have.

    Raises
    ------
    BadInput
        The file is damaged, not consistent, or of another size.
    """
    arrays = dict(zip(_ARRAYS, read_arrays(path, _ARRAYS), strict=True))
    for name, array in arrays.items():
        if name != "attr_data":
            whole_numbers(array, f"{path}: {name}")
    nodes = len(arrays["labels"])
    for name, width in (("adj", facts.nodes), ("attr", facts.attribute_width)):
        shape = arrays[f"{name}_shape"].tolist()
        if shape != [facts.nodes, width] or nodes != facts.nodes:
            raise BadInput(
                f"{path}: {name}_shape is {shape} with {nodes} labels, "
                f"but {facts.name} has {[facts.nodes, width]}: get it anew"
            )
    classes, labels = np.unique(arrays["labels"], return_inverse=True)
    rows, columns = csr_places(arrays["adj_indptr"], arrays["adj_indices"], (nodes, nodes), f"{path}: adj")
    topology = undirected(rows, columns, np.asarray([0, nodes]))
    words = _words(arrays, (nodes, facts.attribute_width), str(path))
    names = tuple(str(value) for value in classes)
    places = np.arange(nodes)
    raw = RawGraphs(facts.name, topology, None, (), words, labels.astype(np.int64), names, places=places)
    refuse_other_sizes(raw, facts, str(path))
    return raw


def _words(arrays: dict[str, npt.NDArray[Any]], shape: tuple[int, int], where: str) -> SparseRows:
    rows, columns = csr_places(arrays["attr_indptr"], arrays["attr_indices"], shape, f"{where}: attr")
    values = arrays["attr_data"]
    if len(values) != len(columns) or not np.all(values >= 0):  # not a number is not, either
        raise BadInput(f"{where}: attr_data must hold {len(columns)} numbers, none below 0")
    positive = values > 0
    return rows_of_ones(rows[positive], columns[positive], shape)


class _Networks(Family):
    """One ``.npz`` file for each name; no digests, since only copies that were saved anew were at hand."""

    examples = "node"
    edge_attributes = False
    columns = ("name", "nodes", "edges", "features", "classes")
    archives: ClassVar[Mapping[str, str]]
    """Name of each dataset's file."""

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return self.archives[name]

    def check(self, path: Path, name: str) -> None:
        """Check that an archive holds the arrays needed."""
        check_network(path)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read an archive; see `read_network`."""
        return read_network(path, self.facts[name])


class CitationFull(_Networks):
    """Papers linked by citations."""

    name = "citation-full"
    title = "CitationFull: citation networks, node classification"
    folder = "citation_full"
    upstream = "https://github.com/abojchevski/graph2gauss/raw/master/data"
    facts = by_name(
        DatasetFacts("CitationFull-Cora", 1, 70, 0, 8710, None, 19793, 126842),
        DatasetFacts("CitationFull-Cora_ML", 1, 7, 0, 2879, 246, 2995, 16316),
        DatasetFacts("CitationFull-CiteSeer", 1, 6, 0, 602, 85, 4230, 10674),
        DatasetFacts("CitationFull-DBLP", 1, 4, 0, 1639, 339, 17716, 105734),
        DatasetFacts("CitationFull-PubMed", 1, 3, 0, 500, None, 19717, 88648),
    )
    names = facts
    archives: ClassVar[Mapping[str, str]] = {
        name: f"{name.removeprefix('CitationFull-').lower()}.npz" for name in facts
    }


class Coauthor(_Networks):
    """Authors linked by joint papers."""

    name = "coauthor"
    title = "Coauthor: co-author networks, node classification"
    upstream = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
    facts = by_name(
        DatasetFacts("Coauthor-CS", 1, 15, 0, 6805, 136, 18333, 163788),
        DatasetFacts("Coauthor-Physics", 1, 5, 0, 8415, 382, 34493, 495924),
    )
    names = facts
    archives: ClassVar[Mapping[str, str]] = {
        "Coauthor-CS": "ms_academic_cs.npz",
        "Coauthor-Physics": "ms_academic_phy.npz",
    }
