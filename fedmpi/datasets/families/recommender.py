"""Ratings of items by users: one graph of users and items for each category of items.

The files are FedGraphNN's (He et al. 2021), made of Ciao and Epinions of Tang, Gao, Liu, "mTrust" (WSDM
2012). As its Table 1 counts them, a (user, item) pair that was rated several times is one edge, and of
each category's graph the largest connected component is kept.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.bounds import Bounded, undamaged
from fedmpi.datasets.family import Family
from fedmpi.datasets.networks import refuse_other_sizes, undirected
from fedmpi.datasets.numbers import read_table
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.tables import DatasetFacts, by_name
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import pointers

MEMBERS = ("graph.txt", "user.dict", "item.dict", "category.dict")
"""Text: user, item, rating; user, node; item, node; node of an item, category."""

_MOST_BYTES = 1 << 26
"""Of an archive, unpacked; the largest known one, Epinions, has 19 MB."""

_MOST_NODES = 1 << 31
"""Two of them are one number of 64 bits."""


def read_ratings(path: Path, name: str) -> RawGraphs:
    """Read the ratings of a dataset; every pair of a user and an item is an example.

    Of a pair with several ratings the first is kept. Graphs are in the order of the categories' numbers,
    nodes of a graph in the order of the original nodes (users first).

    Parameters
    ----------
    path : Path
        ``.tar.gz`` with the `MEMBERS` in a folder; only these are read, nothing is unpacked to disk.
    name : str
        Name of the dataset.

    Returns
    -------
    RawGraphs
        `places` are (user, item), `labels` the ratings, `node_rows` the original nodes: a user has one
        node in each category.

    Raises
    ------
    BadInput
        The archive is damaged, or its content is not consistent.
    """
    tables = _tables(path)
    users, user_nodes = _numbering(tables["user.dict"], f"{path}: user.dict")
    items, item_nodes = _numbering(tables["item.dict"], f"{path}: item.dict")
    num_nodes = len(users) + len(items)
    if not np.array_equal(np.sort(np.concatenate([user_nodes, item_nodes])), np.arange(num_nodes)):
        raise BadInput(f"{path}: user.dict and item.dict must number {num_nodes} nodes from 0, each once")
    item_category = _categories(tables["category.dict"], item_nodes, num_nodes, f"{path}: category.dict")
    ratings = tables["graph.txt"]
    if ratings.shape[1] != 3 or not np.isfinite(ratings[:, 2]).all():
        raise BadInput(f"{path}: graph.txt: must have user, item and a finite rating in each row")
    where = f"{path}: graph.txt"
    user = user_nodes[_looked_up(ratings[:, 0], users, f"{where}: users")]
    item = item_nodes[_looked_up(ratings[:, 1], items, f"{where}: items")]
    _, first = np.unique(user * num_nodes + item, return_index=True)  # sorted by user, then item
    return packed(name, user[first], item[first], ratings[first, 2], item_category[item[first]], num_nodes)


def packed(
    name: str, user: Int, item: Int, rating: npt.NDArray[np.float64], category: Int, num_nodes: int
) -> RawGraphs:
    """Return the graphs of all categories, of distinct pairs of original nodes.

    Parameters
    ----------
    name : str
        Of the dataset.
    user, item : int64 [m]
        Original nodes of each pair, sorted by user.
    rating : float64 [m]
    category : int64 [m]
        Of each pair's item.
    num_nodes : int
        Number of original nodes.
    """
    categories, graph = np.unique(category, return_inverse=True)
    nodes, place = np.unique(
        np.concatenate([graph * num_nodes + user, graph * num_nodes + item]), return_inverse=True
    )
    sender, receiver = place[: len(user)], place[len(user) :]
    kept = _in_largest_component(sender, receiver, nodes // num_nodes, len(categories))
    number = np.cumsum(kept) - 1
    graph_ptr = pointers(np.bincount((nodes // num_nodes)[kept], minlength=len(categories)))
    edges = np.flatnonzero(kept[sender])
    edges = edges[np.argsort(graph[edges], kind="stable")]
    places = np.stack([number[sender[edges]], number[receiver[edges]]], axis=1)
    topology, rows = undirected(places[:, 0], places[:, 1], graph_ptr), (nodes % num_nodes)[kept]
    raw = RawGraphs(name, topology, None, (), None, rating[edges, None], ("rating",), "regression")
    return replace(raw, places=places, node_rows=rows)


def _in_largest_component(first: Int, second: Int, graph_of: Int, num_graphs: int) -> npt.NDArray[np.bool_]:
    """Return whether each node is in its graph's largest connected component; of equal ones the first."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    num_nodes = len(graph_of)
    links = coo_matrix((np.ones(len(first), np.int8), (first, second)), (num_nodes, num_nodes))
    count, component = connected_components(links, directed=False)
    sizes = np.bincount(component, minlength=count)
    graph_of_component = np.zeros(count, np.int64)
    graph_of_component[component] = graph_of
    order = np.lexsort((np.arange(count), -sizes, graph_of_component))
    largest = order[np.searchsorted(graph_of_component[order], np.arange(num_graphs))]
    kept: npt.NDArray[np.bool_] = np.isin(component, largest)
    return kept


def _tables(path: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Return the members' tables of numbers, each not empty."""
    found: dict[str, npt.NDArray[np.float64]] = {}
    with undamaged(path), gzip.open(path) as unpacked, _stream(unpacked, path) as archive:
        for member in archive:
            part = member.name.rsplit("/", 1)[-1]
            if part in MEMBERS and member.isreg() and part not in found:
                stream = archive.extractfile(member)
                assert stream is not None  # it is a file
                found[part] = _table(stream, f"{path}: {part}")
    for part in MEMBERS:
        if part not in found or not len(found[part]):
            raise BadInput(f"{path} holds no {part} with numbers: get it anew")
    return found


def _stream(unpacked: gzip.GzipFile, path: Path) -> tarfile.TarFile:
    """Return an archive that is read once from its beginning, and no more than `_MOST_BYTES` of it."""
    return tarfile.open(fileobj=Bounded(unpacked, _MOST_BYTES, str(path)), mode="r|")


def _table(stream: IO[bytes], where: str) -> npt.NDArray[np.float64]:
    """Return rows of numbers that are separated by single spaces."""
    return read_table(io.BytesIO(stream.read().replace(b" ", b",")), np.float64, where)


def _numbering(table: npt.NDArray[np.float64], where: str) -> tuple[Int, Int]:
    """Return the keys of a table of two columns, ascending, and what stands beside each."""
    if table.shape[1] != 2 or not np.all((table >= 0) & (table < _MOST_NODES) & (table % 1 == 0)):
        raise BadInput(f"{where}: must have two whole numbers from 0 to {_MOST_NODES - 1} in each row")
    keys, first = np.unique(table[:, 0].astype(np.int64), return_index=True)
    if len(keys) < len(table):
        raise BadInput(f"{where}: numbers something twice")
    return keys, table[first, 1].astype(np.int64)


def _looked_up(values: npt.NDArray[np.float64], keys: Int, where: str) -> Int:
    """Return the place of each value among the ascending keys."""
    place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    unknown = np.flatnonzero(keys[place] != values)
    if len(unknown):
        raise BadInput(f"{where}: row {unknown[0] + 1} has {values[unknown[0]]:g}, which has no number")
    return place


def _categories(table: npt.NDArray[np.float64], item_nodes: Int, num_nodes: int, where: str) -> Int:
    """Return the category of each node, int64 [num_nodes], -1 for users."""
    nodes, categories = _numbering(table, where)
    if not np.array_equal(nodes, np.sort(item_nodes)):
        raise BadInput(f"{where}: must have one row for each of the {len(item_nodes)} items")
    found = np.full(num_nodes, -1, np.int64)
    found[nodes] = categories
    return found


class Recommender(Family):
    """FedGraphNN's archives, which cannot be downloaded from anywhere."""

    name = "recommender"
    title = "Recommender systems: a graph per category, regression of ratings"
    examples = "edge"
    edge_attributes = False
    labels = "regression"
    facts = by_name(
        DatasetFacts("Ciao", 28, 1, 0, 0, 1168, 144226, 539866),
        DatasetFacts("Epinions", 27, 1, 0, 0, 1742, 427254, 1793354),
    )
    digests: ClassVar[Mapping[str, str]] = {
        "Ciao": "955f565bea354892ab2e89b2a0f4be5e38dc1722720bef96cb94674bbbb150ab",
        "Epinions": "16557a930d9c9db16fdd4b58c03f1ff5cd4045d28a3597b751653d9fede7fec4",
    }
    names = facts
    folder = "recsys"
    columns = ("name", "graphs", "nodes", "edges", "ratings")

    def file(self, name: str) -> str:
        """Return the name of the archive."""
        return f"fedgraphnn_{name.lower()}.tar.gz"

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read an archive; see `read_ratings`."""
        raw = read_ratings(path, name)
        refuse_other_sizes(raw, self.facts[name], str(path))
        return raw
