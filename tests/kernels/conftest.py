"""Graphs of several kinds, and the comparison of compiled kernels with torch-geometric."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from tests.making import assert_close, clique, flat, generated, packed

STREAMS = DropoutStreams(seed=1, client=2, round=3, step=0)


@pytest.fixture(scope="session")
def labelled():
    return generated(0, 30)


@pytest.fixture(scope="session")
def cliques():
    """Ten graphs, each two cliques that share a node: many twins, one-hot degrees."""
    graphs = []
    for number in range(10):
        first, second = 3 + number, 2 + 30 * (number == 9) + number // 2
        edges = [(first - 1 + a, first - 1 + b) for a, b in clique(second)[1]]
        graphs.append((first + second - 1, clique(first)[1] + edges))
    topology = packed(*graphs)
    degrees = np.diff(topology.row_ptr)
    present, node_row = np.unique(degrees, return_inverse=True)
    rows = np.zeros((len(present), degrees.max() + 1), np.float32)
    rows[np.arange(len(present)), present] = 1
    return GraphSet(topology, rows, node_row, np.arange(10) % 3)


@pytest.fixture(scope="session")
def attributed(labelled):
    nodes = labelled.topology.num_nodes
    rows = np.random.default_rng(3).standard_normal((nodes, 5)).astype(np.float32)
    return replace(labelled, feature_rows=rows, node_row=np.arange(nodes))


def reference(model, graphs):
    """Return loss, gradient, and outputs without dropout, by torch-geometric."""
    batch = Batch.of(graphs)
    model.gradient.zero_()
    loss = cross_entropy(model.module(batch, STREAMS, "reference"), batch.labels)
    loss.backward()
    with torch.no_grad():
        logits = model.module(batch, None, "reference")
    return loss.item(), model.gradient.numpy().copy(), logits.numpy(), model.parameters.numpy().copy()


def compiled(options, graphs, scratch=None):
    """Return a model for these graphs and its compiled network."""
    classes = int(graphs.labels.max()) + 1
    bonds = 0 if graphs.edges is None else graphs.edges.shape[1]
    model = flat(options, graphs.feature_rows.shape[1], classes, bonds, (5, 1))
    return model, fast_network(options, model, scratch or Scratch())


@pytest.fixture(scope="session")
def equals_reference():
    """Compare a step and an evaluation with torch-geometric's, of all graphs or of those chosen from them."""

    def check(options, everything, chosen=None, tolerance=1e-5):
        graphs = everything if chosen is None else everything.take(chosen)
        model, fast = compiled(options, graphs)
        batch = fast.prepare(everything) if chosen is None else fast.prepare(everything).take(chosen)
        before = model.parameters.clone()
        loss, gradient, logits, after = reference(model, graphs)
        model.parameters.copy_(before)
        outcome = fast.step(batch, STREAMS)
        assert_close(model.parameters, after, tolerance)
        assert outcome.mean_loss == pytest.approx(loss, rel=tolerance)
        assert_close(model.gradient, gradient, tolerance)
        whole = np.abs(gradient).max()
        for slot in model.slots:
            found, expected = (each[slot.start : slot.stop] for each in (model.gradient.numpy(), gradient))
            most = np.abs(expected).max()
            if most > 1e-5 * whole:  # before batch normalisation a bias has nothing but rounding
                assert np.abs(found - expected).max() <= 10 * tolerance * max(most, whole / 50), slot.name
        assert_close(fast.logits(fast.levels(graphs)), logits, tolerance)
        right = fast.evaluate(fast.levels(graphs), graphs.labels)
        assert np.array_equal(right.hits, logits.argmax(axis=1) == graphs.labels)

    return check
