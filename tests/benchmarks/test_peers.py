"""The peer does the same work: same graphs, same function, same gradient, same steps."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch as PygBatch

from fedmpi.benchmarks.cases import choose
from fedmpi.benchmarks.peers import Pair, compare_accuracies, compare_curves, compare_times, load_reference
from fedmpi.benchmarks.samples import Turns
from fedmpi.datasets.source import DataSource
from fedmpi.graphs.batch import Batch
from tests.benchmarks.conftest import copy_parameters


@pytest.fixture
def reference():
    return load_reference()


@pytest.fixture
def make_pair(tiny, source, world):
    """Return a pair with dropout off, the peer's models with the parameters of fedmpi's clients."""

    def make(*overrides):
        pair = Pair(tiny("model.dropout=0", "batch_size=128", *overrides), source, world)
        for client, peer in zip(pair.prepared.rounds.clients.values(), pair.peer.clients, strict=True):
            copy_parameters(client, peer.model)
            peer.model.eval()
        return pair

    return make


@pytest.fixture
def pair(make_pair):
    return make_pair()


def check_gradient(client, peer):
    for slot, parameter in zip(client.model.slots, peer.model.parameters(), strict=True):
        ours = client.model.gradient[slot.start : slot.stop].view(slot.shape)
        assert (ours - parameter.grad).abs().max() <= 1e-5 * max(1.0, parameter.grad.abs().max()), slot


def test_constants_are_those_of_a_case(reference):
    case = choose("peers/fedavg", ["setting=proteins"]).case
    assert (case.model.hidden, case.model.layers) == (reference.HIDDEN, reference.LAYERS)
    assert (case.model.dropout, case.batch_size) == (reference.DROPOUT, reference.BATCH_SIZE)
    rates = (case.optimizer.lr, case.optimizer.weight_decay)
    assert rates == (reference.LEARNING_RATE, reference.WEIGHT_DECAY)
    assert (case.share, case.local_epochs, case.optimizer.state) == ("conv", 1, "kept")


def test_the_peer_holds_the_same_graphs(pair):
    for client, peer in zip(pair.prepared.rounds.clients.values(), pair.peer.clients, strict=True):
        train, held_out = pair.prepared.federation.data(pair.prepared.case, client.id)
        theirs = [peer.train_loader.dataset, peer.val_loader.dataset + peer.test_loader.dataset]
        for ours, data in zip((train, held_out), theirs, strict=True):
            packed = PygBatch.from_data_list(list(data))
            own = Batch.of(ours)
            assert torch.equal(packed.y, own.labels)
            assert torch.equal(packed.x, own.x)
            theirs, mine = (set(map(tuple, each.edge_index.T.tolist())) for each in (packed, own))
            assert theirs == mine
            assert packed.num_edges == own.topology.num_edges


def test_same_parameters_give_the_same_loss_of_every_held_out_graph(pair):
    for client, peer in zip(pair.prepared.rounds.clients.values(), pair.peer.clients, strict=True):
        found = client.evaluate()
        for ours, loader in ((found.val, peer.val_loader), (found.test, peer.test_loader)):
            data = PygBatch.from_data_list(list(loader.dataset))
            with torch.no_grad():
                scores = peer.model(data.x, data.edge_index, data.batch)
            losses = torch.nn.functional.cross_entropy(scores, data.y, reduction="none").numpy()
            assert np.allclose(ours.losses, losses, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernels", ["compiled", "csr", "reference"])
def test_same_parameters_give_the_same_loss_and_gradient(make_pair, kernels):
    pair = make_pair(f"kernels={kernels}")
    for client, peer in zip(pair.prepared.rounds.clients.values(), pair.peer.clients, strict=True):
        data = PygBatch.from_data_list(list(peer.train_loader.dataset))
        scores = peer.model(data.x, data.edge_index, data.batch)
        loss = torch.nn.functional.cross_entropy(scores, data.y)
        loss.backward()
        done = client.train_locally(pair.prepared.case, pair.prepared.rounds.algorithm, 0)
        assert done.loss == pytest.approx(loss.item(), rel=1e-5)
        check_gradient(client, peer)


def test_a_round_without_dropout_has_the_same_losses_and_models(tiny, source, world, reference, monkeypatch):
    monkeypatch.setattr("fedmpi.benchmarks.peers.load_reference", lambda: reference)
    monkeypatch.setattr(reference, "DROPOUT", 0.0)
    pair = Pair(tiny("model.dropout=0", "batch_size=128"), source, world)
    clients = pair.prepared.rounds.clients
    for client, peer in zip(clients.values(), pair.peer.clients, strict=True):
        copy_parameters(client, peer.model)
    copy_parameters(clients[0], pair.peer.server)
    theirs = np.array(pair.peer.round())
    ours = pair.own_round().results
    assert np.allclose(ours["train_loss"], theirs[:, 0], rtol=1e-5)
    for client, peer in zip(clients.values(), pair.peer.clients, strict=True):
        updated = torch.cat([p.detach().flatten() for p in peer.model.convs.parameters()])
        assert torch.allclose(client.shared.pack(client.row), updated, atol=2e-5)
    assert ours["test_accuracy"].mean() == pytest.approx(pair.peer.test_accuracy())


def test_molecules_with_several_labels_have_the_same_losses_and_gradient(world, real_data, reference):
    chosen = ["setting=sider", "kernels=csr", "model.dropout=0", "batch_size=1000"]
    pair = Pair(choose("gpu/rounds", chosen), DataSource.from_environment(), world)
    client, peer = pair.prepared.rounds.clients[0], pair.peer.clients[0]
    copy_parameters(client, peer.model)
    peer.model.eval()
    data = PygBatch.from_data_list(list(peer.test_loader.dataset))
    with torch.no_grad():
        losses = reference.loss_of(peer.model(data.x, data.edge_index, data.batch), data.y, "none")
    losses = losses.view(len(data.y), -1)
    assert np.allclose(client.evaluate().test.losses, losses.sum(dim=1), rtol=1e-4)
    data = PygBatch.from_data_list(list(peer.train_loader.dataset))
    reference.loss_of(peer.model(data.x, data.edge_index, data.batch), data.y).backward()
    client.train_locally(pair.prepared.case, pair.prepared.rounds.algorithm, 0)
    check_gradient(client, peer)


def test_a_round_of_the_peer_takes_as_many_steps_on_as_many_graphs(tiny, source, world):
    pair = Pair(tiny("batch_size=128"), source, world)
    report = pair.own_round()
    graphs = [len(peer.train_loader.dataset) for peer in pair.peer.clients]
    assert report.results["samples"].tolist() == graphs
    assert report.results["steps"].tolist() == [len(peer.train_loader) for peer in pair.peer.clients]
    assert report.results["evaluation_flops"].all()


def test_times_come_in_pairs_and_torchs_switch_is_as_before(tiny, source, world):
    case, before = tiny("batch_size=128"), torch.are_deterministic_algorithms_enabled()
    report = compare_times([case], source, world, Turns(3, 1))
    assert torch.are_deterministic_algorithms_enabled() == before
    programs = {each.labels["program"]: each.figures for each in report.measurements}
    assert set(programs) == {"peer", "fedmpi", "peer / fedmpi"}
    for kind in ("wall", "cpu"):
        above, below = (programs[name][f"{kind}_seconds"].values for name in ("peer", "fedmpi"))
        ratios = programs["peer / fedmpi"][f"{kind}_ratio"].values
        assert ratios == tuple(a / b for a, b in zip(above, below, strict=True))
        found = report.results[case.case.name][f"{kind}_ratio"]
        assert min(ratios) <= found["low"] <= found["median"] <= found["high"] <= max(ratios)


def test_curves_within_and_outside_the_band():
    peer = np.array([[0.5, 0.6], [0.7, 0.8], [0.6, 0.7]])
    near = compare_curves(peer, peer + 0.01)
    assert near["own_in_peer_band"] == near["peer_in_own_band"] == 1.0
    # t(0.975, 2 degrees) = 4.3027; the deviation of 0.1 over sqrt(3) seeds
    assert near["peer"]["high"][0] - near["peer"]["mean"][0] == pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-4)
    assert near["difference"]["mean"] == pytest.approx(0.01)
    # Welch: t(0.975, 4 degrees) = 2.7764 of the standard error 0.1 sqrt(2 / 3)
    assert near["difference"]["high"] == pytest.approx(0.01 + 2.7764 * 0.1 * (2 / 3) ** 0.5, rel=1e-4)
    half = compare_curves(peer, peer + np.array([0.01, 0.5]))
    assert half["own_in_peer_band"] == 0.5


def test_equals_are_to_be_expected_in_the_band_less_often_than_95_percent():
    generator = np.random.default_rng(1)
    peer, own = generator.normal(size=(2, 5, 20_000))
    found = compare_curves(peer, own)
    assert found["expected"] == pytest.approx(0.878, abs=0.002)
    assert found["own_in_peer_band"] == pytest.approx(found["expected"], abs=0.01)


def test_accuracies_of_both_programs_by_seed(tiny, source, world):
    case = tiny("batch_size=128")
    report = compare_accuracies([case], source, world, rounds=2, seeds=(10, 42))
    labels = [(each.labels["program"], each.labels["seed"]) for each in report.measurements]
    assert labels == [("peer", 10), ("peer", 42), ("fedmpi", 10), ("fedmpi", 42)]
    assert {len(each.figures["test_accuracy"].values) for each in report.measurements} == {2}
    assert all(0 <= v <= 1 for each in report.measurements for v in each.figures["test_accuracy"].values)
