"""NeighGen's equations by hand."""

import numpy as np
import pytest
import torch

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.mended import Generated, mended
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.models.generator import Generator, NeighGenFlops
from fedmpi.models.neighgen import (
    Draws,
    NeighGen,
    Sage,
    differences_to_nearest,
    nearest_neighbours,
    no_dropout,
    number_loss,
)

SETTINGS = Generator(
    hidden_share=0.5,
    most=3,
    hidden=4,
    latent=5,
    generator_hidden=(6, 7),
    dropout=0.5,
    epochs=2,
    exchanges=2,
    lr=0.01,
    weight_decay=0.0,
    number_weight=1.0,
    feature_weight=1.0,
    class_weight=1.0,
    others_weight=1.0,
)

# A path 0-1-2 and a single node 3.
TOPOLOGY = Topology(np.array([0, 4]), np.array([0, 1, 3, 4, 4]), np.array([1, 0, 2, 1]))
FEATURES = np.array([[1, 0], [0, 2], [-1, 1], [3, 3]], np.float32)
PART = GraphSet(TOPOLOGY, FEATURES, np.arange(4), np.zeros(4, np.int64), places=np.arange(4))


def neighgen(seed=0):
    torch.manual_seed(seed)
    return NeighGen(SETTINGS, 2, 2)


def test_numbers_are_rounded_and_at_most_p():
    numbers = torch.tensor([0.0, 0.49, 0.5, 1.5, 2.49, 9.0, float("nan")])
    assert neighgen().counts(numbers).tolist() == [0, 0, 1, 2, 2, 3, 3]


def test_loss_of_numbers_is_smooth_l1():
    """0.5 off by 0.5: 0.5^2 / 2; 3 off by 2: 2 - 1/2; the mean of both."""
    assert number_loss(torch.tensor([0.5, 3.0]), torch.tensor([1, 1])).item() == pytest.approx(1.625 / 2)


def test_no_generated_nodes_cost_nothing():
    nobody, hidden = (torch.zeros(0, 2), np.zeros(0, np.int64)), (np.array([0, 1]), np.array([2]))
    rows, nearest = nearest_neighbours(*nobody, *hidden, torch.from_numpy(FEATURES))
    assert len(rows) == len(nearest) == 0


def test_other_clients_answer_with_the_difference_to_their_nearest_node():
    rows = torch.tensor([[0.0, 1.5], [4.0, 4.0]])
    found = differences_to_nearest(rows, torch.from_numpy(FEATURES))
    assert found.tolist() == [[0.0, -0.5], [1.0, 1.0]]


def test_a_layer_is_a_map_of_the_node_and_one_of_the_mean_of_its_neighbours():
    """Identity for the node, doubling for the mean: node 1 has the mean (0, 1/2) of nodes 0 and 2."""
    sage = Sage(2, 2, 2)
    for layer, own, mean in ((0, 1.0, 2.0), (1, 1.0, 0.0)):
        sage.own[layer].weight.data = own * torch.eye(2)
        sage.own[layer].bias.data = torch.zeros(2)
        sage.mean[layer].weight.data = mean * torch.eye(2)
    found = sage(Batch.of(PART), torch.from_numpy(FEATURES), no_dropout)
    assert found.tolist() == [[1, 4], [0, 3], [0, 5], [3, 3]]


def test_the_classifier_reads_the_mended_graph():
    new, neighbours = np.array([[1, 1], [2, -1], [0, 3]], np.float32), np.array([1, 1, 3])
    whole = mended(PART, Generated(neighbours, new))
    sage, x = neighgen().classifier, torch.from_numpy(FEATURES)
    expected = sage(Batch.of(whole), torch.from_numpy(whole.features), no_dropout)[:4]
    found = sage.mended(Batch.of(PART), x, torch.from_numpy(new), torch.from_numpy(neighbours), no_dropout)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_nodes_neighbours_do_not_depend_on_the_other_nodes_numbers():
    network, z = neighgen(), torch.arange(20.0).view(4, 5) / 20
    draws = Draws(3, 1, 0)
    many = network.neighbours(z, torch.tensor([2, 0, 3, 1]), draws, no_dropout)
    assert many.shape == (6, 2)
    assert many.abs().max() < 1  # tanh
    few = network.neighbours(z, torch.tensor([0, 0, 2, 0]), draws, no_dropout)
    np.testing.assert_allclose(few.detach().numpy(), many[2:4].detach().numpy(), atol=1e-6)
    assert network.neighbours(z, torch.zeros(4, dtype=torch.int64), draws, no_dropout).shape == (0, 2)


def test_noise_and_dropout_are_functions_of_client_and_epoch():
    noise = Draws(1, 2, 3).noise(4, 5)
    assert torch.equal(noise, Draws(1, 2, 3).noise(4, 5))
    assert not torch.equal(noise, Draws(1, 2, 4).noise(4, 5))
    assert not torch.equal(noise, Draws(1, 3, 3).noise(4, 5))
    dropped = Draws(1, 2, 3).dropout(0.25)(torch.ones(50, 40), 1)
    assert dropped.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert 0.2 < (dropped == 0).float().mean() < 0.3


def test_counted_dense_products_are_torchs():
    from torch.utils.flop_counter import FlopCounterMode

    network, x = neighgen(), torch.from_numpy(FEATURES)
    graph, counts = Batch.of(PART), torch.tensor([2, 0, 0, 1])
    neighbours = torch.repeat_interleave(counts)
    flops = NeighGenFlops(SETTINGS, 2, 2)
    with FlopCounterMode(display=False) as counter:
        z, _ = network.states(graph, x, no_dropout)
        rows = network.neighbours(z, counts, Draws(0, 0, 0), no_dropout)
        network.classifier.mended(graph, x, rows, neighbours, no_dropout)
    # Sums over the 4 edges and of 3 generated nodes, of widths 4 (hidden), 5 (latent) and 2 (classes); torch
    # counts their matrix as a dense one of 4 x 4.
    sums = 4 * 4 + 4 * 5 + (4 + 2 * 3) * 4 + (4 + 3) * 2
    alone = flops.epoch(4, 4, 2, 3, pairs=0)
    assert alone == 3 * (counter.get_total_flops() - 2 * 16 * (4 + 5 + 4 + 2) + sums)
    assert flops.epoch(4, 4, 2, 3, pairs=7) - alone == 3 * 7 * 2
    passes = alone // 3 - flops.encoding(4, 4) - flops.features(2)
    assert flops.exchange(4, 4, 2, 3, pairs=7) == 3 * flops.features(2) + 2 * passes + 3 * 7 * 2
