"""A client's part of one large graph: its structure, its examples, and what a pass over it works on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedmpi.case.schema import Case
from fedmpi.datasets.features import feature_table, resolve
from fedmpi.datasets.networks import directed, undirected, with_relations
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import EdgeAttributes, GraphSet, Int, SparseRows, Topology, induced
from fedmpi.models.counts import GraphCounts
from fedmpi.partition.partition import ClientSplit
from fedmpi.tasks.known import task_of


def part_data(case: Case, raw: RawGraphs, split: ClientSplit) -> tuple[GraphSet, GraphSet]:
    """Return the part with its training examples, and with its validation examples followed by its test ones.

    Both have one structure. Of nodes it has all edges between the client's nodes; of pairs it has those
    of the training examples alone.
    """
    assert split.nodes is not None and raw.places is not None
    topology, edges = _structure(case, raw, split)
    settings, nodes = case.dataset, split.nodes
    table, of_node = feature_table(raw, split.nodes, topology, settings.features, scaling=settings.scaling)

    def having(examples: Int) -> GraphSet:
        labels, places = np.asarray(raw.labels)[examples], _places(raw, nodes, examples)
        return GraphSet(topology, table, of_node, labels, edges, places=places)

    return having(split.train), having(np.concatenate([split.val, split.test]))


def part_counts(case: Case, raw: RawGraphs, split: ClientSplit, parts: Sequence[str]) -> GraphCounts:
    """Return what a pass over the part with the examples of some parts of the split works on."""
    assert split.nodes is not None
    edges = _structure(case, raw, split)[0].num_edges + len(split.nodes)
    examples = sum(len(getattr(split, part)) for part in parts)
    outputs = task_of(case.task, raw.examples, raw.task, supervised=True).scores_each
    return GraphCounts(1, len(split.nodes), edges, examples, entries(case, raw, split.nodes), outputs)


def entries(case: Case, raw: RawGraphs, nodes: Int) -> int | None:
    """Return the entries of sparse features of some nodes; None where they are dense."""
    meaning = resolve(raw, case.dataset.features)
    if meaning == "identity" or (meaning == "degree" and raw.examples != "graph"):
        return len(nodes)
    if meaning == "attributes" and isinstance(raw.node_attributes, SparseRows):
        return int(np.diff(raw.node_attributes.row_ptr)[raw.rows_of(nodes)].sum())
    return None


def _structure(case: Case, raw: RawGraphs, split: ClientSplit) -> tuple[Topology, EdgeAttributes | None]:
    """Return the edges that messages take, nodes as in ``split.nodes``, and their attributes or relations."""
    nodes = split.nodes
    assert nodes is not None
    if raw.examples == "node":
        topology, edges = induced(raw.topology, nodes)
        return topology, None if raw.edge_attributes is None else np.asarray(raw.edge_attributes)[edges]
    first, second = _places(raw, nodes, split.train).T
    graph_ptr = np.array([0, len(nodes)])
    if case.model.relational:
        topology, relations = with_relations(first, second, np.asarray(raw.labels)[split.train], graph_ptr)
        return topology, relations.astype(np.uint8)[:, None]
    joined = directed if case.dataset.both_directions else undirected
    return joined(first, second, graph_ptr), None


def _places(raw: RawGraphs, nodes: Int, examples: Int) -> Int:
    """Return the places of examples among the client's nodes; a node of several graphs is one node."""
    assert raw.places is not None
    return np.searchsorted(nodes, raw.rows_of(np.asarray(raw.places)[examples]))
