"""Knowledge graphs: triples of head, relation and tail, in one text file for each part of the split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedmpi.datasets.bounds import too_large, undamaged
from fedmpi.datasets.family import Family
from fedmpi.datasets.networks import undirected
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import DatasetFacts, by_name
from fedmpi.errors import BadInput

FILES = ("train.txt", "valid.txt", "test.txt")
"""In the order of `RawGraphs.parts`: 0 training, 1 validation, 2 test."""

_MOST_BYTES = 1 << 28
"""Of one file; the largest known one, the training triples of YAGO3-10, has under 100 MB."""


def read_triples(folder: Path, name: str) -> RawGraphs:
    """Read a knowledge graph: one graph, every triple an example.

    Nodes are the entities of all files and classes the relations, both in the sorted order of their text.
    Edges are the pairs of the training triples in both directions, without self-loops and duplicates.

    Parameters
    ----------
    folder : Path
        Where the `FILES` are: head, relation and tail in each line, separated by tabs.
    name : str
        Name of the dataset.

    Returns
    -------
    RawGraphs
        `places` are (head, tail) and `labels` the relations of all triples, training ones first.

    Raises
    ------
    BadInput
        A file is damaged, or larger than any known one.
    """
    columns = [_columns(folder / file) for file in FILES]
    heads, relations, tails = ([text for part in columns for text in part[column]] for column in range(3))
    lengths = [len(part[0]) for part in columns]
    num_training = lengths[0]
    entity_names, nodes = _numbered([*heads, *tails])
    relation_names, labels = _numbered(relations)
    places = nodes.reshape(2, -1).T.copy()
    training = places[:num_training]
    topology = undirected(training[:, 0], training[:, 1], np.asarray([0, len(entity_names)]))
    parts = np.repeat(np.arange(3, dtype=np.int8), lengths)
    names = tuple(relation_names)
    return RawGraphs(name, topology, None, (), None, labels, names, places=places, parts=parts)


def _columns(path: Path) -> list[list[str]]:
    """Return heads, relations and tails of a file."""
    if path.stat().st_size > _MOST_BYTES:
        raise BadInput(too_large(str(path), _MOST_BYTES))
    with undamaged(path):
        text = path.read_bytes().decode()
    lines = [line.rstrip("\r") for line in text.split("\n")]
    rows = [line.split("\t") for line in lines if line]
    if not rows:
        raise BadInput(f"{path} is empty")
    wrong = next((number for number, row in enumerate(rows, 1) if len(row) != 3 or not all(row)), None)
    if wrong is not None:
        raise BadInput(f"{path}: triple {wrong} is not head, relation and tail, separated by tabs")
    return [list(column) for column in zip(*rows, strict=True)]


def _numbered(texts: list[str]) -> tuple[list[str], Int]:
    """Return the distinct texts, sorted, and the number of each text among them."""
    distinct = sorted(set(texts))
    number = {text: place for place, text in enumerate(distinct)}
    return distinct, np.fromiter((number[text] for text in texts), np.int64, len(texts))


_TRIPLES = {
    "FB15k-237": (272115, 17535, 20466),
    "WN18RR": (86835, 3034, 3134),
    "YAGO3-10": (1079040, 5000, 5000),
}
"""Training, validation, test."""

_FOLDERS = {"FB15k-237": "FB15k-237", "WN18RR": "WN18RR/original", "YAGO3-10": "other/YAGO3-10"}


class KnowledgeGraphs(Family):
    """Three files each."""

    name = "knowledge-graph"
    title = "Knowledge graphs: classification of relations"
    examples = "edge"
    edge_attributes = False
    facts = by_name(
        DatasetFacts("FB15k-237", 1, 237, 0, 0, 5983, 14541, 421892),
        DatasetFacts("WN18RR", 1, 11, 0, 0, 482, 40943, 143664),
        # From FedGraphNN's tables, for estimates: no copy of the training triples was at hand.
        DatasetFacts("YAGO3-10", 1, 37, 0, 0, None, 123182, 1548364),
    )
    digests: ClassVar[Mapping[str, str]] = {
        "FB15k-237": "9449f5b2a1448ff487f109b1738471310d402d83186a7842dae0e90f98199260",
        "WN18RR": "730798f02d02ffbd2c96b67fd51899b25b9de13c05995d914a974658f33e74d0",
    }
    names = facts
    folder = "kg"
    upstream = "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/master"
    columns = ("name", "entities", "edges", "relations", "training", "validation", "test")

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return the sizes of a graph and the triples of each part."""
        facts = self.facts[name]
        return name, facts.nodes, facts.directed_edges, facts.classes, *_TRIPLES[name]

    def files(self, name: str) -> tuple[str, ...]:
        """Return the names of the files, below the folder of the dataset."""
        return tuple(f"{_FOLDERS[name]}/{file}" for file in FILES)

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read the files; see `read_triples`."""
        return read_triples(path / _FOLDERS[name], name)
