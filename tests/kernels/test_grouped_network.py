"""Networks of several clients at once equal torch-geometric's of each, dropout on, within 1e-5."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.grouped_layers import _Linear
from fedmpi.kernels.networks import grouped_network
from fedmpi.models.dropout import DropoutStreams, device_keep_bits, device_kept
from fedmpi.models.options import MODELS, GinOptions
from fedmpi.seeds import Purpose, keep_bits, key
from tests.making import assert_close, flat, generated, receivers, thinned, without_edges


def batch_of(parts, who=None, *, rounded=False):
    graphs = GroupGraphs(parts, torch.device("cpu"), rounded=rounded)
    return graphs.resident(dict.fromkeys(range(len(parts)) if who is None else who)).resident


def check(options, parts, rows, batch, streams):
    """Compare losses and gradients of a batch with those of each client's part alone, which is on its row."""
    model = flat(options, parts[0].feature_rows.shape[1])
    leaf = torch.stack([model.initialise(4, row) for row in rows]).requires_grad_()
    masks = np.array([each.keys(options.layers + 1) for each in streams if each])
    keys = torch.from_numpy(masks.view(np.int64)) if any(streams) else None
    gin = grouped_network(options, model)
    nats, _ = gin.judge(gin.logits(leaf, batch, keys), batch)
    (nats * batch.weights).sum().backward()
    for row, part in enumerate(parts):
        model.parameters.copy_(leaf[row].detach())
        model.gradient.zero_()
        alone = Batch.of(part)
        loss = cross_entropy(model.module(alone, streams[row], "reference"), alone.labels)
        loss.backward()
        assert nats[row, : part.num_graphs].mean().item() == pytest.approx(loss.item(), rel=1e-5)
        assert_close(leaf.grad[row], model.gradient)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3, 0.5])
def test_equals_each_client_by_torch_geometric(dropout, rounded):
    parts = [generated(*span) for span in ((0, 20), (20, 22), (25, 40))]
    batch = batch_of(parts, rounded=rounded)
    assert rounded == (batch.sizes.nodes % 8 == batch.sizes.examples % 8 == batch.sizes.members % 8 == 0)
    check(GinOptions(dropout=dropout), parts, range(3), batch, [DropoutStreams(1, n, 3, 0) for n in range(3)])


def test_a_group_may_have_no_graphs():
    batch = batch_of([generated(0, 3).take(np.zeros(0, np.int64))])
    assert batch.labels.shape == (1, 0)


@pytest.mark.parametrize("name", ["gin", "gcn", "gat", "sage", "sgc"])
@pytest.mark.parametrize("rounded", [False, True])
def test_some_graphs_of_some_clients_one_way_edges(rounded, name):
    parts = [generated(*span, domain=2) for span in ((0, 9), (9, 12), (12, 30))]
    parts = [replace(part, topology=one_way(part.topology)) for part in parts]
    graphs = GroupGraphs(parts, torch.device("cpu"), rounded=rounded, by_entry=name == "gat")
    chosen = {0: np.array([7, 2, 2]), 2: np.array([11, 0, 17, 4])}
    host = graphs.resident(chosen)
    taken = [parts[client].take(numbers) for client, numbers in chosen.items()]
    counts = [[part.num_graphs, part.topology.num_nodes, part.topology.num_edges] for part in taken]
    assert host.counts.tolist() == counts
    check(MODELS[name](dropout=0.0), taken, chosen, host.resident, [None, None])


def one_way(topology):
    """Keep the edges from lower to higher node numbers only."""
    return thinned(topology, topology.columns < receivers(topology))


def test_a_weight_gradient_in_pieces_is_that_of_the_whole():
    torch.manual_seed(5)
    x, weight, bias = torch.randn(3, 48, 7), torch.randn(3, 5, 7), torch.randn(3, 5)
    gradient, found = torch.randn(3, 48, 5), []
    for product in (_Linear.apply, lambda x, w, b: torch.baddbmm(b.unsqueeze(1), x, w.transpose(1, 2))):
        leaves = [each.clone().requires_grad_() for each in (x, weight, bias)]
        output = product(*leaves)
        found.append([output.detach(), *torch.autograd.grad(output, leaves, gradient)])
    for mine, torchs in zip(*found, strict=True):
        assert torch.allclose(mine, torchs, rtol=1e-5, atol=1e-5)


def test_graphs_without_nodes():
    part = GraphSet(without_edges(0, 0), np.zeros((0, 3), np.float32), np.zeros(0, int), np.array([0, 1]))
    model = flat(GinOptions())
    gin = grouped_network(GinOptions(), model)
    row = model.initialise(4, 0)
    logits = gin.logits(row[None], batch_of([part]), None)
    model.parameters.copy_(row)
    expected = model.module(Batch.of(part), None).detach()
    assert torch.allclose(logits[0], expected)


@pytest.mark.parametrize("drop", [0.25, 0.3, 0.5])
def test_masks_are_those_of_the_seeds(drop):
    names = [key(7, Purpose.DROPOUT, client) for client in range(3)]
    signed = torch.tensor([name - 2**64 if name >= 2**63 else name for name in names])
    expected = [keep_bits(name, 1003, drop).astype(bool) for name in names]
    assert np.array_equal(device_keep_bits(signed, 1003, drop).numpy(), expected)
    some = torch.tensor([1002, 0, 7, 64])
    assert np.array_equal(device_kept(signed[:, None], some, drop).numpy(), np.array(expected)[:, some])
