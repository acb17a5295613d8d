"""Citation and co-author networks in ``.npz`` files: nodes with words, one class each.

Read as PyTorch Geometric's `CitationFull` and `Coauthor` do: edges in both directions without self-loops
and duplicates, every positive feature set to 1. Sources: Bojchevski and Günnemann, "Deep Gaussian
Embedding of Graphs" (ICLR 2018); Shchur et al., "Pitfalls of Graph Neural Network Evaluation" (2018).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.networks import csr_places, refuse_other_sizes, rows_of_ones, undirected
from fedmpi.datasets.npz import check_arrays, read_arrays, whole_numbers
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DatasetFacts
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import SparseRows, Topology

_ARRAYS = (
    *("adj_indices", "adj_indptr", "adj_shape"),
    *("attr_data", "attr_indices", "attr_indptr", "attr_shape", "labels"),
)


def check_network(path: Path) -> None:
    """Check, without unpacking, that a file holds the arrays needed; see `check_arrays`."""
    check_arrays(path, _ARRAYS)


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
    num_nodes = len(arrays["labels"])
    for name, expected in (
        ("adj_shape", [facts.nodes, facts.nodes]),
        ("attr_shape", [facts.nodes, facts.attribute_width]),
    ):
        if arrays[name].tolist() != expected or num_nodes != facts.nodes:
            raise BadInput(
                f"{path}: {name} is {arrays[name].tolist()} with {num_nodes} labels, "
                f"but {facts.name} has {expected}: get it anew"
            )
    classes, labels = np.unique(arrays["labels"], return_inverse=True)
    raw = RawGraphs(
        facts.name,
        _topology(arrays, num_nodes, str(path)),
        None,
        (),
        _words(arrays, (num_nodes, facts.attribute_width), str(path)),
        labels.astype(np.int64),
        tuple(str(value) for value in classes),
        places=np.arange(num_nodes),
    )
    refuse_other_sizes(raw, facts, str(path))
    return raw


def _topology(arrays: dict[str, npt.NDArray[Any]], num_nodes: int, where: str) -> Topology:
    shape = num_nodes, num_nodes
    rows, columns = csr_places(arrays["adj_indptr"], arrays["adj_indices"], shape, f"{where}: adj")
    return undirected(rows, columns, np.asarray([0, num_nodes]))


def _words(arrays: dict[str, npt.NDArray[Any]], shape: tuple[int, int], where: str) -> SparseRows:
    rows, columns = csr_places(arrays["attr_indptr"], arrays["attr_indices"], shape, f"{where}: attr")
    values = arrays["attr_data"]
    if len(values) != len(columns) or not np.all(values >= 0):  # not a number is not, either
        raise BadInput(f"{where}: attr_data must hold {len(columns)} numbers, none below 0")
    positive = values > 0
    return rows_of_ones(rows[positive], columns[positive], shape)
