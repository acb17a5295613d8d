"""Citation networks with the split of Planetoid: nodes with words, one class each.

Yang, Cohen, Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph Embeddings" (ICML 2016); read
as PyTorch Geometric's `Planetoid` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.family import Family
from fedmpi.datasets.inert_pickle import Csr, unpickle
from fedmpi.datasets.networks import csr_of, csr_places, refuse_other_sizes, undirected
from fedmpi.datasets.numbers import read_table
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import DatasetFacts, by_name
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import SparseRows, Topology

PARTS = ("allx", "tx", "y", "ally", "ty", "graph", "test.index")
"""Files of a network; the eighth, ``x``, repeats the first rows of ``allx``."""

_VALIDATION = 500
"""Nodes after the training nodes."""


def file_of(name: str, part: str) -> str:
    """Return the name of a file."""
    return f"ind.{name.lower()}.{part}"


def read_network(folder: Path, facts: DatasetFacts) -> RawGraphs:
    """Read a network: one graph, every node an example.

    Nodes without a row in the files (15 of CiteSeer) have no words and the first class, as in PyTorch
    Geometric; they are in no part.

    Parameters
    ----------
    folder : Path
        Where the files are.
    facts : DatasetFacts
        Name and sizes that the network must have.

    Raises
    ------
    BadInput
        A file is damaged, not consistent, or of another size.
    """
    paths = {part: folder / file_of(facts.name, part) for part in PARTS}
    tests = _test_nodes(paths["test.index"], facts.nodes)
    words = _words(paths, tests, facts)
    labels, names = _labels(paths, tests, facts)
    parts = np.full(facts.nodes, -1, np.int8)
    num_training = len(_one_hot(paths["y"]))
    parts[num_training : min(num_training + _VALIDATION, tests.min())] = 1
    parts[:num_training] = 0
    parts[tests] = 2
    topology = _topology(paths["graph"], facts)
    raw = RawGraphs(
        *(facts.name, topology, None, (), words, labels, names), places=np.arange(facts.nodes), parts=parts
    )
    refuse_other_sizes(raw, facts, str(folder))
    return raw


def _test_nodes(path: Path, num_nodes: int) -> Int:
    with path.open("rb") as file:
        table = read_table(file, np.int64, str(path))
    tests: Int = table.reshape(-1)
    if table.shape[1] != 1 or len(np.unique(tests)) < len(tests):
        raise BadInput(f"{path}: must have one node per row, each once")
    if tests.min() < 0 or tests.max() >= num_nodes:
        raise BadInput(f"{path}: nodes run from {tests.min()} to {tests.max()}, but there are {num_nodes}")
    return tests


def _nodes(first: Path, num_first: int, second: Path, num_second: int, tests: Int) -> Int:
    """Return the node of every row of the two files: the first nodes, then the test nodes in their order."""
    if num_second != len(tests) or num_first > tests.min():
        raise BadInput(
            f"{first.name} has {num_first} rows and {second.name} {num_second}, "
            f"but the {len(tests)} test nodes begin at {tests.min()}: get all files in {first.parent} anew"
        )
    return np.concatenate([np.arange(num_first), tests])


def _words(paths: dict[str, Path], tests: Int, facts: DatasetFacts) -> SparseRows:
    first, second = (unpickle(paths[part]) for part in ("allx", "tx"))
    width = facts.attribute_width
    rows, columns, values, offset = [], [], [], 0
    for path, matrix in ((paths["allx"], first), (paths["tx"], second)):
        if not isinstance(matrix, Csr) or matrix.shape[1] != width or not 0 <= matrix.shape[0] <= facts.nodes:
            raise BadInput(
                f"{path}: must be a sparse matrix of at most {facts.nodes} rows and {width} columns"
            )
        row, column = csr_places(matrix.row_ptr, matrix.columns, matrix.shape, str(path))
        if len(matrix.values) != len(column) or not np.isfinite(matrix.values).all():
            raise BadInput(f"{path}: must hold {len(column)} finite numbers")
        rows.append(row + offset)
        columns.append(column)
        values.append(matrix.values.astype(np.float32))
        offset += matrix.shape[0]
    nodes = _nodes(paths["allx"], first.shape[0], paths["tx"], second.shape[0], tests)
    keys = nodes[np.concatenate(rows)] * width + np.concatenate(columns)
    order = np.argsort(keys)
    keys = keys[order]
    if np.any(keys[1:] == keys[:-1]):
        raise BadInput(
            f"{paths['allx']} or {paths['tx'].name}: holds a feature of a node twice: get them anew"
        )
    return SparseRows(*csr_of(keys, facts.nodes, width), np.concatenate(values)[order], width)


def _one_hot(path: Path) -> npt.NDArray[Any]:
    table = unpickle(path)
    if not isinstance(table, np.ndarray) or table.ndim != 2 or 0 in table.shape:
        raise BadInput(f"{path}: must be a table of classes")
    return table


def _labels(paths: dict[str, Path], tests: Int, facts: DatasetFacts) -> tuple[Int, tuple[str, ...]]:
    first, second = (_one_hot(paths[part]) for part in ("ally", "ty"))
    if first.shape[1] != second.shape[1]:
        raise BadInput(f"{paths['ally']}: has {first.shape[1]} classes, but ty has {second.shape[1]}")
    nodes = _nodes(paths["ally"], len(first), paths["ty"], len(second), tests)
    labels = np.zeros(facts.nodes, np.int64)
    labels[nodes] = np.argmax(np.concatenate([first, second]), axis=1)
    return labels, tuple(str(number) for number in range(first.shape[1]))


def _topology(path: Path, facts: DatasetFacts) -> Topology:
    graph = unpickle(path)
    if not isinstance(graph, dict) or not all(isinstance(each, list) for each in graph.values()):
        raise BadInput(f"{path}: must be a list of neighbours for each node")
    lists = list(graph.values())
    lengths = [len(each) for each in lists]
    if sum(lengths) > 4 * facts.directed_edges + facts.nodes:  # a list may stand for many nodes
        raise BadInput(f"{path}: has {sum(lengths):,} neighbours: get it anew")
    numbers = [*graph, *(neighbour for each in lists for neighbour in each)]
    if not all(type(number) is int and 0 <= number < facts.nodes for number in numbers):
        raise BadInput(f"{path}: holds something else than nodes below {facts.nodes}")
    nodes = np.asarray(numbers, np.int64)
    senders = np.repeat(nodes[: len(lists)], lengths)
    return undirected(senders, nodes[len(lists) :], np.asarray([0, facts.nodes]))


class Planetoid(Family):
    """Seven files each."""

    name = "planetoid"
    title = "Planetoid: citation networks, node classification"
    examples = "node"
    edge_attributes = False
    columns = ("name", "nodes", "edges", "features", "classes")
    facts = by_name(
        DatasetFacts("Cora", 1, 7, 0, 1433, 168, 2708, 10556),
        DatasetFacts("CiteSeer", 1, 6, 0, 3703, 99, 3327, 9104),
        DatasetFacts("PubMed", 1, 3, 0, 500, 171, 19717, 88648),
    )
    digests: ClassVar[Mapping[str, str]] = {
        "Cora": "7f6e86264b83e872f759b0f1756a067ca77dc20f6ff8c1564721759bfdf44d61",
        "CiteSeer": "610613be50981a41ff3fa2387491877bec27a9849b62eb189b0d7b6a1f884077",
    }
    names = facts
    upstream = "https://github.com/kimiyoung/planetoid/raw/master/data"

    def files(self, name: str) -> tuple[str, ...]:
        """Return the names of the files."""
        return tuple(file_of(name, part) for part in PARTS)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read the files; see `read_network`."""
        return read_network(path, self.facts[name])
