"""Clients that average with neighbours: by hand, against theory, and in whole runs."""

import numpy as np
import pytest
import torch

from fedmpi.analysis.summary import summarise
from fedmpi.comm.world import World
from fedmpi.compression.sign import SignOptions
from fedmpi.compression.top_k import TopKOptions
from fedmpi.exchange.compression import ESTIMATE
from fedmpi.exchange.gossip import Gossip
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.store.reader import load_run
from fedmpi.topologies.drawn import ErdosRenyiOptions
from fedmpi.topologies.exponential import OnePeerOptions
from fedmpi.topologies.fixed import CompleteOptions, RingOptions, StarOptions
from tests.exchange.test_group_models import hooks_of
from tests.mpi.session import Silent, only


class Mixed:
    """Clients on one rank, whose models change by averages alone.

    `sizes` are the elements of a model, and those of them that are parameters.
    """

    def __init__(self, topology, models, compression=None, sizes=None, initial=None):
        self.size, parameters = sizes or (models.shape[1],) * 2
        self.hooks, self.clients = hooks_of("fedavg", len(models)), len(models)
        self.trained, self.round = {}, 0
        self.kept = {number: {ESTIMATE: torch.zeros(parameters)} for number in range(self.clients)}
        compressor = None if compression is None else compression.make([(parameters,)], 0)
        hosts = np.zeros(self.clients, np.int64)
        self.gossip = Gossip(
            topology, 1, World().collectives, hosts, (self.size, parameters), self.hooks,
            lambda client: self.trained[client], self.kept, compressor,
        )  # fmt: skip
        begin = np.zeros(self.size, np.float32) if initial is None else initial
        self.gossip.begin(np.arange(self.clients), begin, range(self.clients))
        self.start = models.astype(np.float32)

    def step(self, participants=None):
        """Run a round in which training leaves models as they are; in the first it leads to those given."""
        chosen = np.arange(self.clients) if participants is None else np.array(participants)
        models = self.models if self.round else self.start
        self.trained = dict(enumerate(models))
        if not self.round:
            self.gossip.models = dict(enumerate(models))
        self.hooks.where.round = self.round
        group = np.arange(self.clients)
        self.gossip.run(RoundPlan(group, group, group, -1, -1, False, False), chosen, group, {}, {})
        self.round += 1
        return self.models

    @property
    def models(self):
        return np.stack([self.gossip.models[number] for number in range(self.clients)])


def drawn(clients, size=50):
    return np.random.default_rng(3).normal(size=(clients, size)).astype(np.float32)


def distance(models):
    return float(np.square(models - models.mean(axis=0)).sum(axis=1).mean())


def test_a_round_on_a_star_by_hand():
    # client 0 takes a quarter of each; the others three quarters of their own and a quarter of its
    star = Mixed(StarOptions(), np.array([[0, 8], [4, 0], [8, 0], [12, 0]]))
    assert star.step().tolist() == [[6, 2], [3, 2], [6, 2], [9, 2]]
    assert star.gossip.rows(0)["client_bytes_up"].tolist() == [24, 8, 8, 8]


def test_who_is_away_sends_and_changes_nothing():
    ring = Mixed(RingOptions(), np.array([[0], [3], [6], [9]]))
    assert ring.step([0, 1]).tolist() == [[1], [2], [6], [9]]
    rows = ring.gossip.rows(0)
    assert rows["client_bytes_up"].tolist() == rows["client_bytes_down"].tolist() == [4, 4, 0, 0]
    assert rows["degree"].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "topology", [RingOptions(), OnePeerOptions(), ErdosRenyiOptions(p=0.4)], ids=lambda one: one.name
)
def test_the_mean_stays_and_the_distance_falls_by_the_spectral_gap(topology):
    clients = Mixed(topology, drawn(16))
    mean, before = clients.start.mean(axis=0, dtype=np.float64), distance(clients.start)
    for number in range(40):
        gap, after = clients.gossip.mixing(number).spectral_gap, distance(clients.step())
        assert after <= before * (1 - gap) ** 2 * (1 + 1e-6) + 1e-12
        before = after
    assert clients.models.mean(axis=0) == pytest.approx(mean, abs=1e-6)


def test_the_slowest_mode_of_a_ring_falls_by_the_spectral_gap_exactly():
    wave = np.cos(2 * np.pi * np.arange(16) / 16)[:, None]
    ring = Mixed(RingOptions(), wave)
    factor = (1 - ring.gossip.mixing(0).spectral_gap) ** 2
    for _ in range(5):
        before = distance(ring.models if ring.round else ring.start)
        assert distance(ring.step()) == pytest.approx(factor * before, rel=1e-5)


def test_one_peer_agrees_after_a_period():
    clients = Mixed(OnePeerOptions(), drawn(8))
    for _ in range(3):
        clients.step()
    assert distance(clients.models) < 1e-12


def test_gossip_of_all_that_changed_is_plain_gossip():
    plain, whole = (
        Mixed(RingOptions(), drawn(6)),
        Mixed(RingOptions(step=1.0), drawn(6), TopKOptions(share=1.0)),
    )
    for participants in ([0, 1, 2, 3, 4, 5], [0, 1, 4], [1, 2, 3, 5]):
        assert whole.step(participants) == pytest.approx(plain.step(participants), abs=1e-5)


def test_a_round_of_compressed_gossip_by_hand():
    # of two parameters the larger change travels, the statistic behind them as it is
    models = np.array([[3, 1, 0], [1, -4, 8]])
    pair = Mixed(
        CompleteOptions(step=0.5), models, TopKOptions(share=0.5), (3, 2), np.array([1, 0, 0], np.float32)
    )
    # y: [3, 0] of [1, 0] + 2, and [1, -4]; x_0 += 0.5 * 0.5 * ([1, -4] - [3, 0]); statistics: plain halves
    assert pair.step().tolist() == [[2.5, 0, 4], [1.5, -3, 4]]
    assert [kept[ESTIMATE].tolist() for kept in pair.kept.values()] == [[3, 0], [1, -4]]
    assert pair.gossip.link_bytes == 1 * 4 + 1 + 4
    # client 0 is away: it changes nothing, and gets what client 1 sends: 1 of [1.5, -3] - [1, -4]
    assert pair.step([1]).tolist() == [[2.5, 0, 4], [1.5, -3, 4]]
    assert pair.kept[1][ESTIMATE].tolist() == [1, -3]
    rows = pair.gossip.rows(1)
    assert (rows["client_bytes_up"].tolist(), rows["client_bytes_down"].tolist()) == ([0, 9], [9, 0])


@pytest.mark.parametrize("compression", [TopKOptions(share=0.1), SignOptions()], ids=lambda one: one.name)
def test_compressed_gossip_agrees_on_the_mean(compression):
    clients = Mixed(RingOptions(step=0.2), drawn(8), compression)
    for _ in range(400):
        clients.step()
    assert distance(clients.models) < 0.01 * distance(clients.start)
    assert clients.models.mean(axis=0) == pytest.approx(clients.start.mean(axis=0), abs=1e-4)


ONE = "case=sampled", "weights=equal", "participation=1.0"


def finished(root, *settings):
    """Return the record of a run on one rank."""
    job = only(root, *settings)
    run(job, World(), Silent(), StopRequest())
    return load_run(job.folder)


def test_the_complete_graph_has_the_bits_of_fedavg(tmp_path):
    server, complete = (
        finished(tmp_path / "server", *ONE),
        finished(tmp_path / "complete", *ONE, "topology=complete"),
    )
    beside = {"client_bytes_up", "client_bytes_down", "group"}
    for name in server.results.keys() - beside:
        assert np.array_equal(server.results[name], complete.results[name], equal_nan=True), name
    assert (complete.results["consensus_distance"] == 0).all()
    assert (complete.results["spectral_gap"] == 1).all()
    for name in ("val_loss", "test_loss", "test_accuracy"):  # all have the mean
        assert np.array_equal(complete.results[f"mean_model_{name}"], complete.results[name])


def test_the_record_of_a_ring(tmp_path, fedmpi):
    record = finished(tmp_path, *ONE, "topology=ring", "evaluation.every=3")
    ring = record.results
    assert (ring["degree"] == 2).all() and (ring["consensus_distance"] > 0).all()
    evaluated = [False, False, True, True]
    for name in ("test_loss", "mean_model_test_loss"):
        assert (~np.isnan(ring[name]).any(axis=1)).tolist() == evaluated
    assert not np.array_equal(ring["mean_model_test_loss"][2], ring["test_loss"][2])
    shown = summarise(record)
    assert shown["mean_model_test_accuracy"] == ring["mean_model_test_accuracy"][-1].mean()
    assert shown["test_accuracy"] == ring["test_accuracy"][-1].mean()
    assert len(set(ring["parameter_digest"][-1].tolist())) == 5
    printed = fedmpi(
        "report", record.folder, "--by", "algorithm", "--markdown", "--columns", "mean model"
    ).stdout
    assert f"{100 * shown['mean_model_test_accuracy']:.2f}" in printed
