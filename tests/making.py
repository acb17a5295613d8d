"""Small graphs, data sets, clients and models, which tests of several rooms make."""

from dataclasses import replace

import numpy as np

from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.graphs.packed import Topology, pointers
from fedmpi.models.flat import FlatModel
from fedmpi.models.networks import build
from fedmpi.models.options import Shape
from fedmpi.partition.partition import ClientSplit


def packed(*graphs):
    """Return undirected graphs, each given as (number of nodes, edges)."""
    sizes = [size for size, _ in graphs]
    graph_ptr = pointers(sizes)
    both = [
        (start + a, start + b)
        for start, (_, edges) in zip(graph_ptr, graphs, strict=False)
        for one, other in edges
        for a, b in ((one, other), (other, one))
    ]
    rows, columns = np.array(sorted(both), np.int64).reshape(-1, 2).T
    return Topology(graph_ptr, pointers(np.bincount(rows, minlength=sum(sizes))), columns)


def thinned(topology, kept):
    """Return graphs with some of their edges, bool [E], which may so have one direction."""
    degrees = np.bincount(receivers(topology)[kept], minlength=topology.num_nodes)
    return Topology(topology.graph_ptr, pointers(degrees), np.asarray(topology.columns)[kept])


def receivers(topology):
    """Return the node that takes what each edge brings."""
    return np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))


def clique(size):
    """Return a graph of which all nodes are joined."""
    return size, [(a, b) for b in range(size) for a in range(b)]


def without_edges(*sizes):
    """Return graphs of so many nodes."""
    return Topology(pointers(sizes), np.zeros(sum(sizes) + 1, np.int64), np.zeros(0, np.int64))


def dense(matrix):
    """Return a CSR matrix written out."""
    found = np.zeros((matrix.num_rows, matrix.width))
    rows = np.repeat(np.arange(matrix.num_rows), np.diff(matrix.pointers))
    np.add.at(found, (rows, matrix.columns[: len(rows)]), matrix.weights[: len(rows)])
    return found


def generated(first, last, domain=1):
    """Return some graphs of a generated domain."""
    raw = generate(SyntheticOptions(graphs=max(last, 10)), domain)
    return build_features(raw, np.arange(first, last), "original")


def with_labels(graphs, task, columns):
    """Return graphs with labels that follow from their sizes, a third of them missing."""
    draws, count = np.random.default_rng(5), graphs.num_graphs
    sizes = np.diff(graphs.topology.graph_ptr)[:, None] + draws.normal(size=(count, columns))
    labels = sizes if task == "regression" else (sizes > np.median(sizes)).astype(float)
    labels[draws.random(labels.shape) < 0.3] = np.nan
    labels[:, 0] = np.nan_to_num(labels[:, 0])
    return replace(graphs, labels=labels)


def labelled(topology, labels, names="ab", name="TOY", **more):
    """Return a data set without features, whose classes have names of one letter."""
    return RawGraphs(name, topology, None, (), None, np.asarray(labels), tuple(names), **more)


def client(train=(), val=(), test=(), nodes=None, name="client", dataset=0):
    """Return a client with these examples of a data set."""
    parts = (np.array(part, np.int64) for part in (train, val, test))
    return ClientSplit(name, dataset, *parts, True, None if nodes is None else np.array(nodes))


def flat(options, width=3, classes=2, bonds=0, start=(3, 1)):
    """Return a model that starts as of a seed and an owner."""
    model = FlatModel(build(options, Shape(width, classes, bonds)))
    model.initialise(*start)
    return model


def assert_close(found, expected, tolerance=1e-5, scale=None):
    """Compare arrays or tensors, by their largest difference beside the largest of what is expected."""
    found, expected = (np.asarray(each, float) for each in (found, expected))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * (scale or np.abs(expected).max())
