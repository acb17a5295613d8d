"""The peer of nodes and ratings does the same work: same examples, same function, same round."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch as PygBatch

from fedmpi.benchmarks.cases import choose
from fedmpi.benchmarks.peers import Pair
from tests.benchmarks.conftest import copy_parameters

SMALL = {
    "coauthor-cs": '{ name = "synthetic-nodes", egos = { number = 60, hops = 1 } }',
    "ciao": '{ name = "synthetic-ratings", features = "constant", both_directions = true }',
}


@pytest.fixture(params=SMALL)
def pair(request, source, world):
    """Return engine and peer on made graphs, dropout off, the peer's models with the engine's parameters."""
    small = ("model.dropout=0", "partition.clients=3", f"dataset={SMALL[request.param]}")
    options = [f"setting={request.param}", *small]
    pair = Pair(choose("peers/networks", options), source, world)
    for client, peer in zip(pair.prepared.rounds.clients.values(), pair.peer.clients, strict=True):
        copy_parameters(client, peer.model)
    state = pair.peer.clients[0].model.state_dict()
    pair.peer.server = {name: value.clone() for name, value in state.items()}
    return pair


def test_held_out_examples_have_the_same_losses(pair):
    for client, peer in zip(pair.prepared.rounds.clients.values(), pair.peer.clients, strict=True):
        found = client.evaluate()
        for ours, loader in zip((found.val, found.test), peer.held_out, strict=True):
            graphs = list(loader.dataset) if hasattr(loader, "dataset") else loader
            with torch.no_grad():
                loss = peer.loss(PygBatch.from_data_list(graphs) if len(graphs) > 1 else graphs[0])
            assert np.mean(ours.losses) == pytest.approx(loss.item(), rel=1e-4)


def test_a_round_has_the_same_training_losses_and_models(pair):
    theirs = np.array(pair.peer.round())
    ours = pair.own_round().results
    assert np.allclose(ours["train_loss"], theirs[:, 0], rtol=1e-4)
    clients = pair.prepared.rounds.clients
    for client, peer in zip(clients.values(), pair.peer.clients, strict=True):
        for slot, parameter in zip(client.model.slots, peer.model.parameters(), strict=True):
            ours = client.row[slot.start : slot.stop].view(slot.shape)
            assert torch.allclose(ours, parameter, atol=2e-4), slot
