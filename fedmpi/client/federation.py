"""The clients of a case: their data, shapes, costs, and the rank that hosts each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.attacks import LabelFlip
from fedmpi.case.schema import Case
from fedmpi.client.counted import flops_of
from fedmpi.client.subgraphs import entries, part_counts, part_data
from fedmpi.comm.placement import place
from fedmpi.datasets.features import build, feature_width
from fedmpi.datasets.loading import load_all
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.views import view_of
from fedmpi.errors import BadInput
from fedmpi.graphs.diffusion import ViewedGraphs, WeightedTopology
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.graphs.packed import GraphSet, Int, Topology
from fedmpi.graphs.refinement.quotient import twin_counts
from fedmpi.metrics.clustering import can_probe
from fedmpi.models.counts import Flops, GraphCounts, ModelFlops
from fedmpi.models.flops import MessagePassingFlops
from fedmpi.models.options import GcnOptions, GinOptions, SgcOptions, Shape
from fedmpi.objectives.flops import ObjectiveFlops, ViewCounts
from fedmpi.partition.partition import ClientSplit, Partition, make, pooled, with_public
from fedmpi.tasks.base import Task
from fedmpi.tasks.known import task_of
from fedmpi.tasks.together import record_together
from fedmpi.tasks.trial import examples_of, guard, try_out

_SPARSE = 8
"""A floating-point operation of a sparse product takes about so many times one of a dense product."""

_SERVED = 1_000_000
"""What rank 0 does for each client in a round takes about as long as so many floating-point operations."""


@dataclass(frozen=True)
class Federation:
    """The clients of a case, the same on every rank and for every number of ranks.

    Attributes
    ----------
    raws : tuple of RawGraphs
        The datasets, memory-mapped where they are large.
    partition : Partition
        Graph numbers of each client's splits.
    shapes : tuple of Shape
        Model shape of each client.
    task : Task
        Prediction task of the datasets.
    costs : tuple of int
        Counted cost of each client's round, by which clients are placed: FLOPs of training and
        evaluation on the rows that the kernels work on, those of sparse products `_SPARSE` times.
    flops : mapping of Shape to ModelFlops or ObjectiveFlops
        Counts of a client's passes.
    weights : int64 [clients]
        What a client counts in averages: its training graphs, or nodes of a part of a graph; or 1.
    view : WeightedTopology or None
        Diffused view of the one dataset, where the objective has one.
    """

    raws: tuple[RawGraphs, ...]
    partition: Partition
    shapes: tuple[Shape, ...]
    task: Task
    costs: tuple[int, ...]
    flops: Mapping[Shape, Any]
    weights: Int
    view: WeightedTopology | None = None

    @property
    def num_clients(self) -> int:
        """Number of clients; with a population, of those in a round."""
        return len(self.partition.clients)

    def hosts(self, case: Case, workers: Sequence[int]) -> Int:
        """Return the rank that hosts each client, int64 [clients]; clients of a group share one."""
        size = case.group_size if case.kernels == "grouped" else 1
        groups = groups_of(self.shapes, size)
        busy = _SERVED * self.num_clients if case.shared else 0
        ranks = place([sum(self.costs[client] for client in group) for group in groups], workers, busy)
        hosts = np.empty(self.num_clients, np.int64)
        for group, rank in zip(groups, ranks, strict=True):
            hosts[group] = rank
        return hosts

    def data(self, case: Case, client: int) -> tuple[GraphSet, GraphSet]:
        """Return a client's training examples, and its validation examples followed by its test examples."""
        train, held_out = self._data(case, client)
        return poisoned(case, self.num_clients, client, self.shapes[client].classes, train), held_out

    def _data(self, case: Case, client: int) -> tuple[GraphSet, GraphSet]:
        split = self.partition.clients[client]
        raw = self.raws[split.dataset]
        if split.nodes is not None:
            return part_data(case, raw, split)
        parts = [_encoded(case, raw, graphs) for graphs in (split.train, split.held_out)]
        if case.model.own_head:
            known = np.unique(raw.labels[split.train])
            parts = [replace(part, labels=np.searchsorted(known, part.labels)) for part in parts]
        return parts[0], parts[1]

    @property
    def num_public(self) -> int:
        """Number of graphs that all clients have."""
        return 0 if self.partition.public is None else len(self.partition.public)

    def public(self, case: Case) -> GraphSet | None:
        """Return the graphs that all clients have; None without any."""
        return None if self.partition.public is None else self.graphs(case, self.partition.public)

    def graphs(self, case: Case, numbers: Int) -> GraphSet:
        """Return some graphs of the one dataset that the clients of a population share."""
        return _encoded(case, self.raws[0], numbers)

    def views(self, case: Case, client: int) -> tuple[ViewedGraphs, ViewedGraphs]:
        """Return a client's training graphs, and all its graphs, with their diffused view."""
        split = self.partition.clients[client]
        raw = self.raws[split.dataset]
        train = _viewed(case, raw, self.view, split.train)
        some_held_out = len(split.graphs) > len(split.train)
        return train, _viewed(case, raw, self.view, split.graphs) if some_held_out else train


def poisoned(case: Case, num_clients: int, client: int, classes: int, graphs: GraphSet) -> GraphSet:
    """Return a client's training examples as it uses them: an attacker flips their labels, if that is meant.

    Parameters
    ----------
    case : Case
    num_clients, client : int
    classes : int
        Of the client's model.
    graphs : GraphSet
    """
    flips = isinstance(case.attack, LabelFlip) and client in case.attack.attackers(case.seed, num_clients)
    return replace(graphs, labels=classes - 1 - graphs.labels) if flips else graphs


def _built(case: Case, raw: RawGraphs, graphs: Int) -> GraphSet:
    """Return graphs with the features that the case asks for."""
    return build(raw, graphs, case.dataset.features, scaling=case.dataset.scaling)


def _encoded(case: Case, raw: RawGraphs, graphs: Int) -> GraphSet:
    """Return graphs with their features and the structure encodings that the model reads."""
    built = _built(case, raw, graphs)
    columns = case.model.structure_columns
    if columns is None:
        return built
    return replace(built, structure=structure_encoding(built.topology, *columns))


def _viewed(case: Case, raw: RawGraphs, view: WeightedTopology | None, graphs: Int) -> ViewedGraphs:
    """Return graphs with their features, and their part of a diffused view."""
    return ViewedGraphs(_built(case, raw, graphs), None if view is None else view.take(graphs))


def task_of_case(case: Case, raws: Sequence[RawGraphs]) -> type[Task]:
    """Return the task of a case on these datasets."""
    raw = raws[0]
    return task_of(case.task, raw.examples, raw.task, supervised=case.objective.supervised)


def load(case: Case, source: DataSource) -> tuple[RawGraphs, ...]:
    """Return the datasets of a case, with the labels that its task predicts."""
    raws = load_all(case.dataset, source)
    return tuple(examples_of(task_of_case(case, raws), raw) for raw in raws)


def deal(case: Case, algorithm: Algorithm, raws: Sequence[RawGraphs]) -> Partition:
    """Return the case's partition; where the algorithm pools, one client with all of it.

    Raises
    ------
    BadInput
        The partition does not fit these datasets.
    """
    partition = make(case.partition, raws)
    if case.public:
        partition = with_public(partition, case.public, case.partition.seed)
    return pooled(partition) if algorithm.pools else partition


def assemble(case: Case, raws: tuple[RawGraphs, ...], partition: Partition, cache: Path) -> Federation:
    """Size every client's model, check that it fits its labels, and count its round.

    Parameters
    ----------
    cache : Path
        Where views of datasets are kept.
    """
    view = None if case.objective.supervised else _view(case, raws, partition, cache)
    task = task_of_case(case, raws)(case, raws, partition.clients)
    shapes = tuple(_shape(case, raws[split.dataset], split) for split in partition.clients)
    if task.supervised:
        split = partition.clients[0]
        raw = raws[split.dataset]
        try_out(task, raw.num_classes, np.asarray(raw.labels)[split.examples(raw, "train")[:2]])
    guard(task)
    if case.record == "protocol":
        record_together(task)
    if case.share == "all" and len(set(shapes)) > 1:
        raise BadInput(
            'share = "all" needs one model shape, but these clients differ in features or classes; '
            'use share = "conv"'
        )
    first = {shape: client for client, shape in reversed(list(enumerate(shapes)))}
    flops = {
        shape: flops_of(case, shape, partial(_first_batch, case, raws, partition.clients[client], view))
        for shape, client in first.items()
    }
    counts = [_graph_counts(case, raw) for raw in raws]
    costs = tuple(
        _cost(case, raws[split.dataset], counts[split.dataset], split, flops[shape])
        if case.objective.supervised
        else _unsupervised_cost(case, raws[0], view, split, flops[shape])
        for split, shape in zip(partition.clients, shapes, strict=True)
    )
    counted = [1 if case.weights == "equal" else len(split.train) for split in partition.clients]
    return Federation(raws, partition, shapes, task, costs, flops, np.array(counted, np.int64), view)


def _first_batch(
    case: Case, raws: Sequence[RawGraphs], split: ClientSplit, view: WeightedTopology | None
) -> ViewedGraphs:
    """Return a batch of a client's training graphs."""
    raw = raws[split.dataset]
    if split.nodes is not None:
        return ViewedGraphs(part_data(case, raw, split)[0], None)
    return _viewed(case, raw, view, split.train[: case.batch_size])


def _view(
    case: Case, raws: tuple[RawGraphs, ...], partition: Partition, cache: Path
) -> WeightedTopology | None:
    """Return the diffused view that an unsupervised objective asks for, if it does; check its data."""
    if len(raws) > 1 or raws[0].task != "classification":
        raise BadInput(
            f'objective "{case.objective.name}" is scored by the classes of one dataset: choose one whose '
            "graphs have one class each"
        )
    if case.evaluation.probe and not can_probe(np.asarray(raws[0].labels)):
        raise BadInput(f"evaluation.probe needs two classes of 5 graphs each, which {raws[0].name} lacks")
    for split in partition.clients:
        if len(split.train) < case.objective.smallest_batch:
            raise BadInput(
                f'{split.name} has {len(split.train)} graphs, objective "{case.objective.name}" needs '
                f"{case.objective.smallest_batch} in a batch: use fewer clients"
            )
    return None if case.objective.view is None else view_of(raws[0], case.objective.view, cache)


def _shape(case: Case, raw: RawGraphs, split: ClientSplit) -> Shape:
    width = feature_width(raw, case.dataset.features)
    if not case.model.own_head:
        return Shape(width, raw.num_classes, raw.edge_width)
    known = np.unique(raw.labels[split.train])
    unknown = np.setdiff1d(raw.labels[np.concatenate([split.val, split.test])], known)
    if len(unknown):
        raise BadInput(
            f'client {split.name}: model.head = "own" has no output for label {raw.class_names[unknown[0]]} '
            'of its held-out graphs, which its training split lacks; use model.head = "dataset"'
        )
    return Shape(width, len(known), raw.edge_width)


def _graph_counts(case: Case, raw: RawGraphs) -> tuple[Int, Int]:
    """Return the rows and the entries of each graph's matrix, int64 [G] each, as the kernels have it."""
    topology = raw.topology
    if (
        case.kernels == "compiled"
        and raw.places is None
        and isinstance(case.model, GinOptions | GcnOptions | SgcOptions)
    ):
        return twin_counts(topology)
    sizes = np.diff(topology.graph_ptr)
    return sizes, np.diff(topology.row_ptr[topology.graph_ptr]) + sizes


def _cost(case: Case, raw: RawGraphs, counts: tuple[Int, Int], split: ClientSplit, flops: ModelFlops) -> int:
    def work_of(*parts: str) -> GraphCounts:
        if split.nodes is not None:
            return part_counts(case, raw, split, parts)
        return _work_of_graphs(case, raw, counts, split, parts)

    train, held_out = work_of("train"), work_of("val", "test")
    if isinstance(flops, MessagePassingFlops):
        step = flops.work(train, training=True, kernels=case.kernels)
        evaluation = flops.work(held_out, training=False, kernels=case.kernels)
    else:
        step, evaluation = flops.training(train), flops.forward(held_out)
    return _weighed([(case.local_epochs, step), (1, evaluation)])


def _work_of_graphs(
    case: Case, raw: RawGraphs, counts: tuple[Int, Int], split: ClientSplit, parts: Sequence[str]
) -> GraphCounts:
    """Return what a pass over some parts of a client's graphs works on."""
    graphs = np.concatenate([getattr(split, part) for part in parts])
    found = GraphCounts(len(graphs), *(int(count[graphs].sum()) for count in counts))
    if raw.places is None:
        return found
    examples = sum(len(split.examples(raw, part)) for part in parts)
    return replace(found, examples=examples, entries=entries(case, raw, raw.topology.nodes_of(graphs)))


def _unsupervised_cost(
    case: Case, raw: RawGraphs, view: WeightedTopology | None, split: ClientSplit, flops: ObjectiveFlops
) -> int:
    counts = partial(counts_of_views, raw, view)
    passes = [(case.local_epochs, flops.step(*counts(split.train), executed=True))]
    passes.append((1, flops.vectors(*counts(split.graphs), executed=True)))
    if copies := flops.copies(case.local_epochs):
        passes.append((copies, flops.encoding(counts(split.train)[0], executed=True)))
    return _weighed(passes)


def _weighed(passes: Sequence[tuple[int, Flops]]) -> int:
    """Return the cost of passes, each so many times."""
    return sum(times * (flops.dense + _SPARSE * flops.sparse) for times, flops in passes)


def counts_of_views(
    raw: RawGraphs, view: WeightedTopology | None, graphs: Int
) -> tuple[ViewCounts, ViewCounts | None]:
    """Return what a pass over some graphs of a dataset works on, and over their diffused view."""
    diffused = None if view is None else ViewCounts(counts_of_graphs(view.topology, graphs), weighted=True)
    return ViewCounts(counts_of_graphs(raw.topology, graphs), weighted=False), diffused


def counts_of_graphs(topology: Topology, graphs: Int) -> GraphCounts:
    """Return the sizes of some graphs together."""
    first, last = topology.graph_ptr[:-1][graphs], topology.graph_ptr[1:][graphs]
    edges = topology.row_ptr[last] - topology.row_ptr[first]
    return GraphCounts(len(graphs), int((last - first).sum()), int(edges.sum()))


def groups_of(shapes: Sequence[Shape], size: int) -> list[list[int]]:
    """Return the clients of each group: up to `size` of one model shape, in the order of their ids."""
    groups: list[list[int]] = []
    latest: dict[Shape, list[int]] = {}
    for client, shape in enumerate(shapes):
        if shape not in latest or len(latest[shape]) == size:
            latest[shape] = []
            groups.append(latest[shape])
        latest[shape].append(client)
    return groups
