"""Graphs for a trained model: those of a dataset by its name, or the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Batch as GeometricBatch
from torch_geometric.data import Data

from fedmpi.client.passes import in_parts
from fedmpi.datasets.features import build, feature_width
from fedmpi.datasets.loading import load_all, options_class
from fedmpi.datasets.networks import attributed, with_relations
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.smiles import molecule, packed, require_rdkit
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.graphs.from_networkx import as_data
from fedmpi.graphs.packed import GraphSet, Topology, pointers
from fedmpi.trained.about import About
from fedmpi.visible import visible

_FROM_STRUCTURE = ("degree", "constant", "identity")
"""Kinds of features that need no ``x``."""


def prepared(raw: RawGraphs, about: About, structure: tuple[int, int] | None) -> Iterator[GraphSet]:
    """Yield all graphs, part by part, with the features and encodings that a model reads.

    Raises
    ------
    BadInput
        They have other features than the model was trained on.
    """
    kind = "attributes" if raw.name == _OWN and raw.node_attributes is not None else about.features
    if (width := feature_width(raw, kind, about.degree_max)) != about.num_features:
        raise BadInput(f"{raw.name}: nodes have {width} features, the model reads {about.num_features}")
    if raw.edge_width != about.edge_features and not about.relational:
        raise BadInput(
            f"{raw.name}: edges have {raw.edge_width} attributes, the model reads {about.edge_features}"
        )
    for numbers in in_parts(raw.num_graphs):
        part = build(raw, numbers, kind, about.degree_max, about.scaling)
        encoding = None if structure is None else structure_encoding(part.topology, *structure)
        yield replace(part, structure=encoding)


def asked(graphs: Any, about: About) -> RawGraphs:
    """Return what a model is asked about: a dataset by its name, molecules by their SMILES, or graphs.

    Raises
    ------
    BadInput
        See `of_dataset`, `of_smiles` and `own`.
    """
    if isinstance(graphs, str):
        return of_dataset(graphs, about)
    if isinstance(graphs, np.ndarray) or hasattr(graphs, "to_list"):  # a column of pandas
        graphs = graphs.tolist()
    listed = list(graphs) if isinstance(graphs, list | tuple) else []
    if listed and all(isinstance(each, str) for each in listed):
        return of_smiles(listed, about)
    return own(graphs, about)


def of_smiles(smiles: Sequence[str], about: About) -> RawGraphs:
    """Return molecules as a dataset of MoleculeNet has them.

    Raises
    ------
    BadInput
        RDKit is missing or refuses one, or the model is not for graphs.
    """
    require_rdkit()
    if about.examples != "graph":
        raise BadInput(f"SMILES: each is a graph, the model is for {about.examples}s")
    found = []
    for number, text in enumerate(smiles):
        parsed = molecule(text)
        if parsed is None:
            raise BadInput(f"graph {number}: RDKit reads no molecule in {visible(text)}")
        found.append(parsed)
    return packed("SMILES", found, np.full((len(found), 1), np.nan), ("label",), "multi-task")


def of_dataset(name: str, about: About) -> RawGraphs:
    """Return the graphs of a dataset, which is prepared first where it is not.

    Raises
    ------
    BadInput
        It cannot be had, is several, or has no examples of the model's kind; or the model reads relations
        of edges, which are examples.
    """
    if about.relational:
        raise BadInput(f"{name}: its triples are what is asked: give a Data with those that are known")
    source = DataSource.from_environment()
    source.prepare(name)
    raws = load_all(options_class({"name": name})(name=name), source)
    if len(raws) > 1:
        raise BadInput(f"{name} is {len(raws)} datasets: name one")
    if raws[0].examples != about.examples:
        raise BadInput(f"{name}: its examples are {raws[0].examples}s, the model is for {about.examples}s")
    return raws[0]


_OWN = "own graphs"


def own(graphs: Any, about: About) -> RawGraphs:
    """Return graphs of torch-geometric packed; duplicate edges and self-loops are removed, as in datasets.

    Parameters
    ----------
    graphs : Data, Batch, graph of networkx, or iterable of these
        Each with ``edge_index``; ``x`` where features are not made of the structure, ``edge_attr`` where the
        model's dataset has attributes of edges, ``edge_type`` where the model reads relations,
        ``edge_label_index`` where outputs are of edges.
    about : About

    Raises
    ------
    BadInput
        There is no graph, or one lacks something; the message has its number.
    """
    listed = list(_each(graphs))
    if not listed:
        raise BadInput("there are no graphs")
    with_x = listed[0].x is not None or about.features not in _FROM_STRUCTURE
    parts = [_Part(number, graph, about, with_x) for number, graph in enumerate(listed)]
    first = pointers([part.num_nodes for part in parts])
    topology, attributes = _edges(parts, first, about)
    places = None
    if about.examples == "node":
        places = np.arange(topology.num_nodes)
    elif about.examples == "edge":
        places = np.concatenate([part.pairs.T + start for part, start in zip(parts, first[:-1], strict=True)])
    return RawGraphs(
        name=_OWN,
        topology=topology,
        node_labels=None,
        label_widths=(),
        node_attributes=np.concatenate([part.x for part in parts]) if with_x else None,
        labels=np.zeros(len(parts) if places is None else len(places), np.int64),
        class_names=about.names,
        edge_attributes=attributes,
        places=places,
    )


def _edges(
    parts: Sequence[_Part], first: npt.NDArray[np.int64], about: About
) -> tuple[Topology, npt.NDArray[Any] | None]:
    """Return the edges of all graphs, and their attributes or relations where the model reads them."""
    senders, receivers = np.concatenate(
        [part.edges + start for part, start in zip(parts, first[:-1], strict=True)], axis=1
    )
    if about.relational:
        relations = np.concatenate([part.relations for part in parts])
        topology, kept = with_relations(senders, receivers, relations, first)
        return topology, kept[:, None]
    attributes = np.concatenate([part.attributes for part in parts]) if about.edge_features else None
    return attributed(senders, receivers, first, attributes)


def _each(graphs: Any) -> Iterator[Data]:
    """Yield single graphs."""
    graphs = as_data(graphs)
    if isinstance(graphs, GeometricBatch):
        yield from graphs.to_data_list()
    elif isinstance(graphs, Data):
        yield graphs
    elif isinstance(graphs, Iterable) and not isinstance(graphs, str | bytes | torch.Tensor):
        for each in map(as_data, graphs):
            if not isinstance(each, Data):
                raise BadInput(f"graphs must be torch_geometric.data.Data, not {type(each).__name__}")
            yield from _each(each)
    else:
        raise BadInput(f"graphs must be torch_geometric.data.Data, not {type(graphs).__name__}")


class _Part:
    """One graph as arrays."""

    def __init__(self, number: int, graph: Data, about: About, with_x: bool) -> None:
        self._place, self._graph = f"graph {number}", graph
        self.edges = self._array("edge_index", np.int64, (2, None))
        self.x = self._array("x", np.float32, (None, about.num_features)) if with_x else np.zeros((0, 0))
        self.num_nodes = len(self.x) if with_x else int(graph.num_nodes or 0)
        self._refuse_outside(self.edges)
        if about.edge_features:
            shape = (self.edges.shape[1], about.edge_features)
            self.attributes = self._array("edge_attr", np.float32, shape)
        if about.relational:
            self.relations = self._array("edge_type", np.int64, (self.edges.shape[1],))
            if self.relations.size and not 0 <= self.relations.min() <= self.relations.max() < len(
                about.names
            ):
                raise BadInput(
                    f"{self._place}: edge_type must be numbers of the {len(about.names)} relations"
                )
        if about.examples == "edge":
            self.pairs = self._array("edge_label_index", np.int64, (2, None))
            self._refuse_outside(self.pairs)

    def _array(self, name: str, kind: type[np.generic], shape: Sequence[int | None]) -> npt.NDArray[Any]:
        value = getattr(self._graph, name, None)
        wanted = f"[{', '.join('*' if size is None else str(size) for size in shape)}]"
        if not isinstance(value, torch.Tensor):
            raise BadInput(f"{self._place}: it has no {name}, a tensor {wanted}")
        value = value.detach().cpu().to_dense()
        fits = value.dim() == len(shape) and all(
            size in (None, found) for size, found in zip(shape, value.shape, strict=True)
        )
        if not fits:
            raise BadInput(f"{self._place}: {name} is {list(value.shape)}, not {wanted}")
        whole = kind is np.int64
        if whole and (value.is_floating_point() or value.is_complex()):
            raise BadInput(f"{self._place}: {name} must be whole numbers")
        if not whole and not bool(value.isfinite().all()):
            raise BadInput(f"{self._place}: {name} has NaN or infinity")
        return value.numpy().astype(kind)

    def _refuse_outside(self, nodes: npt.NDArray[Any]) -> None:
        if nodes.size and not 0 <= nodes.min() <= nodes.max() < self.num_nodes:
            raise BadInput(f"{self._place}: an edge names a node that is none of its {self.num_nodes}")
