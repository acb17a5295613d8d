"""Heads that read nodes: gradients, sparse features and FLOPs against torch-geometric's layers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedmpi.client.torch_passes import TorchPasses, counts_of
from fedmpi.datasets.egos import EgoOptions, ego_networks
from fedmpi.datasets.families.synthetic_networks import NetworkSize, nodes
from fedmpi.datasets.features import build as build_features
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import dense
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import MODELS, GcnOptions, Shape
from fedmpi.tasks.graph_classification import GraphClassification
from tests.making import assert_close, flat
from tests.models.conftest import dense_flops, step

KINDS = [MODELS[name]() for name in ("gin", "gcn", "sage", "sgc", "gat", "mpnn")]
LAYERS = [MODELS["torch-geometric"](layer=layer) for layer in ("GCNConv", "GATv2Conv", "GPSConv")]


@pytest.fixture(scope="module", params=["published", "honest"])
def graphs(request):
    raw = ego_networks(nodes(NetworkSize(nodes=200)), EgoOptions(number=12, hops=1, protocol=request.param))
    return build_features(raw, np.arange(raw.num_graphs), "original")


@pytest.mark.parametrize("options", [*KINDS, *LAYERS], ids=lambda options: options.name)
def test_sparse_features_give_what_dense_ones_give_along_edges(graphs, options):
    model = flat(options, 200, 4)
    sparse = Batch.of(graphs)
    plain = Batch.of(replace(graphs, feature_rows=dense(graphs.feature_rows)))
    assert sparse.x.layout == torch.sparse_csr
    assert plain.x.layout == torch.strided
    kernels = "reference" if "reference" in options.kernels else "csr"
    logits, ours = step(model, sparse, None), model.gradient.clone()
    expected_logits, expected = step(model, plain, None, kernels), model.gradient.clone()
    assert logits.shape == (len(graphs.places), 4)
    assert torch.allclose(logits, expected_logits, rtol=1e-5, atol=1e-6)
    assert_close(ours, expected)


@pytest.mark.parametrize("options", KINDS[:4], ids=lambda options: options.name)
def test_dense_flops_of_nodes_equal_torchs_counter(graphs, options):
    plain = Batch.of(replace(graphs, feature_rows=dense(graphs.feature_rows)))
    shape = Shape(200, 4)
    flops, counts = options.flops(shape), counts_of(plain)
    found = dense_flops(flat(options, 200, 4), plain)
    assert found == [flops.forward(counts).dense, flops.training(counts).dense]


def test_executed_flops_skip_the_zeros_of_features_and_model_flops_do_not(graphs):
    options, shape = GcnOptions(hidden=16, layers=1, head_layers=1), Shape(200, 4)
    flops = options.flops(shape)
    sparse = Batch.of(graphs)
    counts, num_nodes = counts_of(sparse), graphs.topology.num_nodes
    entries = int(np.diff(graphs.feature_rows.row_ptr)[graphs.node_row].sum())
    assert (counts.entries, counts.examples) == (entries, len(graphs.places))
    plain = replace(counts, entries=None)
    assert flops.forward(counts) == flops.forward(plain)
    saved = 2 * (200 * num_nodes - entries) * 16
    for training, times in ((False, 1), (True, 2)):
        ours = flops.executed(counts, training=training, kernels="csr")
        assert ours == flops.executed(plain, training=training, kernels="csr") - times * saved


def test_a_batch_of_ego_networks_has_their_examples(graphs):
    chosen = np.array([3, 0, 7])
    part = graphs.take(chosen)
    sizes = np.diff(graphs.topology.graph_ptr)[chosen]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for number, graph in enumerate(chosen):
        inside = (part.places >= starts[number]) & (part.places < starts[number + 1])
        first, last = graphs.topology.graph_ptr[graph : graph + 2]
        before = (graphs.places >= first) & (graphs.places < last)
        assert np.array_equal(part.places[inside] - starts[number], graphs.places[before] - first)
        assert np.array_equal(part.labels[inside], graphs.labels[before])


def test_passes_count_nodes_as_examples(graphs):
    model = flat(GcnOptions(), 200, 4)
    task = object.__new__(GraphClassification)
    passes = TorchPasses(graphs, graphs, model, "csr", GcnOptions().flops(Shape(200, 4)), task)
    done = passes.step(passes.batch(None), DropoutStreams(0, 0, 0, 0))
    assert len(done.outcome.losses) == len(graphs.places)
    assert len(passes.evaluate().outcome.hits) == len(graphs.places)
