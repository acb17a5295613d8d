"""FedSage+: what clients learn of each other, what is recorded of it, and which parts they train on."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from fedmpi.client.optimizer import adam_steps
from fedmpi.graphs.packed import GraphSet, Topology
from fedmpi.models import neighgen
from fedmpi.models.neighgen_training import NeighGenTraining
from fedmpi.runs.signals import StopRequest
from tests.algorithms.programs import named

SMALL = (
    "model=sage", "algorithm=fedsage-plus", "algorithm.latent=16", "algorithm.lr=0.02", "algorithm.epochs=8",
    "algorithm.generator_hidden=[8, 16]", "algorithm.hidden_share=0.3", "algorithm.exchanges=2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    """Take steps of a few kFLOP on one thread, as a run does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def generator(**options):
    small = {"latent": 6, "hidden": 5, "generator_hidden": (16, 16), "dropout": 0.0, "lr": 0.01, **options}
    return named("fedsage-plus", **small).generator()


def ring(nodes, seed=0):
    """Return a ring whose nodes are all training examples of two classes."""
    numbers = np.arange(nodes)
    columns = np.sort(np.stack([(numbers - 1) % nodes, (numbers + 1) % nodes], axis=1), axis=1).reshape(-1)
    topology = Topology(np.array([0, nodes]), 2 * np.arange(nodes + 1), columns)
    features = np.random.default_rng(seed).random((nodes, 4), np.float32) - 0.5
    return GraphSet(topology, features, numbers, numbers % 2, places=numbers)


def training(settings, graphs, client=0):
    adam = partial(adam_steps, lr=settings.lr, weight_decay=settings.weight_decay)
    return NeighGenTraining(settings, graphs, 2, 3, client, adam)


def trained(settings, graphs, client=0):
    found = training(settings, graphs, client)
    found.train_alone()
    return found


def test_a_share_of_the_nodes_is_hidden_but_neither_none_nor_all():
    for nodes, share, left in ((10, 0.25, 7), (10, 0.01, 9), (4, 0.99, 1)):
        settings = generator(hidden_share=share)
        assert len(training(settings, ring(nodes))._part.kept) == left


def test_training_alone_brings_the_numbers_of_missing_neighbours():
    """In a ring of 40 without 10 nodes at most 20 nodes have lost a neighbour; an untrained dGen knows of none."""
    own = trained(generator(hidden_share=0.25, epochs=100, lr=0.02), ring(40))
    missing, found = own._part.missing, own._counts.numpy()
    assert np.abs(found - missing).mean() < 0.5 * missing.mean()


def test_an_exchange_follows_the_gradient_of_the_loss_with_all_clients():
    """The gradient of fGen against autograd of the whole loss, with the minima of all clients written out."""
    settings = generator(hidden_share=0.3, epochs=60, weight_decay=0.0, others_weight=0.5, feature_weight=2.0)
    parts = [ring(size, size) for size in (30, 21, 24)]
    learner, *others = [trained(settings, part, client) for client, part in enumerate(parts)]
    rows = learner.generate(0)
    assert 0 < len(rows) == learner.num_rows
    network, part = learner._network, learner._part
    owners = torch.repeat_interleave(learner._counts)
    generated = network.neighbours(learner._z, learner._counts, learner._draws, neighgen.no_dropout)
    everything, own = torch.from_numpy(parts[0].features), torch.zeros(())
    for row, node in zip(generated, owners.tolist(), strict=True):
        hidden = part.hidden[part.hidden_ptr[node] : part.hidden_ptr[node + 1]]
        if len(hidden):
            own = own + (everything[hidden] - row).square().sum(dim=1).min()
    others_nodes = [torch.from_numpy(part.features) for part in parts[1:]]
    distances = [(nodes[None] - generated[:, None]).square().sum(dim=2) for nodes in others_nodes]
    far = sum(each.min(dim=1).values.sum() for each in distances)
    scale = 1 / (len(part.kept) * settings.most * 4)
    loss = 2.0 * scale * (own + 0.5 * far)
    outputs = network.classifier.mended(learner._batch, learner._x, generated, owners, neighgen.no_dropout)
    loss = loss + torch.nn.functional.cross_entropy(outputs[learner._batch.places], learner._batch.labels)
    expected = torch.autograd.grad(loss, list(network.features.parameters()))
    before = learner._model.parameters.clone()
    learner.learn(sum(other.answer(rows) for other in others))
    moved = learner._model.parameters - before
    for parameter, gradient in zip(network.features.parameters(), expected, strict=True):
        assert gradient.abs().max() > 0
        np.testing.assert_allclose(parameter.grad.numpy(), gradient.numpy(), rtol=1e-3, atol=1e-6)
    start = learner._tail.start
    assert (moved[:start] == 0).all() and (moved[start:] != 0).any()  # fGen alone


def test_rounds_train_on_mended_parts_and_score_real_nodes(prepared_parts):
    plain, mended = (prepared_parts("model=sage", "algorithm=fedavg"), prepared_parts(*SMALL))
    _, report = mended.run(0, stop=StopRequest(), checkpoint=False)
    added = report.results["generated_nodes"]
    assert added.sum() > 0
    for number, client in mended.clients.items():
        was = plain.clients[number].passes.batch(None)
        batch = client.passes.batch(None)
        assert batch.topology.num_nodes == was.topology.num_nodes + added[number]
        assert batch.topology.num_edges == was.topology.num_edges + 2 * added[number]
        assert torch.equal(batch.places, was.places) and torch.equal(batch.labels, was.labels)
        assert torch.equal(batch.x.to_dense()[: len(was.x)], was.x.to_dense())
        found, usual = client.passes.evaluate().outcome, plain.clients[number].passes.evaluate().outcome
        assert len(found.losses) == len(usual.losses)


def test_the_first_rounds_row_has_the_costs_of_the_phase(prepared_parts):
    """Each exchange brings every client's rows to all others, and as many answers back."""
    rounds = prepared_parts(*SMALL)
    done = [rounds.run(number, stop=StopRequest(), checkpoint=False)[1].results for number in (0, 1)]
    prepared, width = rounds._prepared, rounds.clients[0].width
    extra = {name: done[0][name] - done[1][name] for name in ("client_bytes_up", "client_bytes_down")}
    up, down = (set(values.tolist()) for values in extra.values())
    ((sent,), (received,)) = up, down
    rows, rest = divmod(sent - 8, 2 * 4 * width)  # two exchanges; 8 bytes say how many rows
    assert rows > 0 and rest == 0
    assert received == sent - 8 + 3 * 8
    assert (done[0]["model_flops"] - done[1]["model_flops"]).tolist() == prepared.flops.tolist()
    assert (prepared.flops > 0).all() and prepared.executed_flops == prepared.flops.sum()
    assert done[1]["generated_nodes"].tolist() == done[0]["generated_nodes"].tolist()


def test_without_exchanges_a_client_mends_alone(prepared_parts):
    rounds = prepared_parts(*SMALL, "algorithm.exchanges=0")
    prepared = rounds._prepared
    assert prepared.sent.tolist() == [8] * 3 and prepared.received.tolist() == [24] * 3
    alone = prepared_parts(*SMALL, "partition.clients=1")
    assert (alone._prepared.sent.tolist(), alone._prepared.received.tolist()) == ([8], [8])
    assert alone._prepared.nodes.sum() > 0


def test_options_are_the_generators():
    settings = named("fedsage-plus", most=7).generator()
    assert (settings.most, settings.generator_hidden) == (7, (256, 2048))
    assert replace(settings, most=5) == named("fedsage-plus").generator()
