"""Ditto's Algorithm 1: the personal model's penalty and steps, by hand, and the global model as FedAvg's."""

import numpy as np
import pytest
import torch

from fedmpi.algorithms.ditto import Ditto, DittoOptions
from fedmpi.benchmarks.federation import prepare
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.models.dropout import DropoutStreams
from fedmpi.registry.check import check_suite
from fedmpi.store.reader import load_run

SUITE = """
name = "ditto"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 80 } }
partition = { name = "iid", clients = 3 }
rounds = 3
batch_size = 16
participation = 0.7
[matrix]
algorithm = ["fedavg", "ditto"]
"""


def test_the_personal_gradient_gains_lambda_times_the_distance():
    gradient = torch.tensor([1.0, 1.0])
    ditto = Ditto(DittoOptions(attraction=0.5))
    ditto._drawn(gradient, torch.tensor([3.0, 0.0]), torch.tensor([1.0, 1.0]), {})
    assert gradient.tolist() == [2.0, 0.5]


@pytest.fixture
def client(tmp_path, request):
    """Return a client before its first round, the case and the hooks: one step without dropout."""
    (tmp_path / "suite.toml").write_text(SUITE)
    settings = ("algorithm=ditto", "algorithm.attraction=2.0", "batch_size=128", "model.dropout=0.0")
    overrides = [*settings, f"optimizer={request.param}", "optimizer.lr=0.25"]
    (checked,) = check_suite(read(tmp_path / "suite.toml", overrides))
    rounds = prepare(checked, DataSource(tmp_path / "cache"), World()).rounds
    return rounds.clients[0], checked.case, rounds.algorithm


@pytest.mark.parametrize("client", ["sgd", "adam"], indirect=True)
def test_a_personal_model_starts_as_the_clients_model(client):
    one, case, hooks = client
    assert torch.equal(one.memory["own"], one.row)
    one.train_locally(case, hooks, 0)
    assert torch.equal(one.memory["own"], one.row)  # v = w: the penalty's gradient is zero


@pytest.mark.parametrize("client", ["sgd"], indirect=True)
def test_only_shared_parameters_are_drawn_to_the_global_model(client):
    one, case, hooks = client
    start = one.row.clone()
    one.memory["own"] += 1.0
    moved = one.memory["own"].clone()
    one.train_locally(case, hooks, 0)
    at_own = moved.clone()
    one.model.parameters.copy_(at_own)
    one.passes.step(one.passes.batch(None), DropoutStreams(case.seed, 0, 0, 1))
    step = -0.25 * one.model.gradient
    drawn = step - 0.25 * 2.0 * (moved - start)
    expected = moved + step
    one.shared.unpack(one.shared.pack(moved + drawn), expected)
    trained = slice(one.model.trained)
    torch.testing.assert_close(one.memory["own"][trained], expected[trained])
    assert not torch.equal(one.row, start)


@pytest.mark.parametrize("client", ["adam"], indirect=True)
def test_a_state_holds_both_models_and_their_moments(client):
    one, case, hooks = client
    one.moments["own"].steps = 2**20 + 5
    one.train_locally(case, hooks, 0)
    kept, personal = one.state(kept=True), one.memory["own"].clone()
    for vector in (one.row, one.memory["own"], one.moments["own"].mean):
        vector.zero_()
    one.adam.steps = one.moments["own"].steps = 0
    one.restore(kept, kept=True)
    assert (one.adam.steps, one.moments["own"].steps) == (1, 2**20 + 6)
    assert torch.equal(one.memory["own"], personal)
    assert np.array_equal(one.state(kept=True), kept)


def test_the_global_model_is_fedavgs_and_the_personal_ones_are_scored(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    assert fedmpi("run", "suite.toml", "--out", "runs").returncode == 0
    fedavg, ditto = (load_run(tmp_path / "runs" / name).results for name in ("fedavg", "ditto"))
    for name in ("train_loss", "delta_norm", "gradient_norm", "samples", "steps", "client_bytes_up"):
        assert np.array_equal(fedavg[name], ditto[name], equal_nan=True), name
    assert (ditto["model_flops"] == 2 * fedavg["model_flops"]).all()
    assert not np.array_equal(fedavg["test_loss"], ditto["test_loss"])
    assert (fedavg["parameter_digest"] != ditto["parameter_digest"]).all()


def test_a_client_that_sits_out_keeps_its_personal_score(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    assert fedmpi("run", "suite.toml", "--case", "ditto", "--out", "runs").returncode == 0
    found = load_run(tmp_path / "runs" / "ditto").results
    idle = found["participated"][1:] == 0
    assert idle.any()
    assert np.array_equal(found["test_loss"][1:][idle], found["test_loss"][:-1][idle])
