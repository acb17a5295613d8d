"""Runs of algorithms with models or prototypes of clients' own: what is FedAvg's, what is scored, who keeps a score."""

import numpy as np
import pytest

import fedmpi
from fedmpi.store.reader import load_run

SUITE = {
    "name": "personal",
    "case": {
        "dataset": {"name": "synthetic", "synthetic": {"domains": 1, "graphs": 80}},
        "partition": {"name": "iid", "clients": 3},
        "rounds": 3,
        "batch_size": 16,
        "participation": 0.7,
    },
    "matrix": {
        "case": [
            *({"label": name, "algorithm": name} for name in ("fedavg", "apfl", "ditto", "fedproto", "self-train")),
            {"label": "fedala", "algorithm": "fedala", "share": "all", "rounds": 4},
            {"label": "plain", "algorithm": {"name": "fedproto", "attraction": 0.0, "predict": "classifier"}},
        ]
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the record of each case holds."""
    folder = tmp_path_factory.mktemp("personal")
    fedmpi.run(SUITE, out=folder, quiet=True)
    return {each["label"]: load_run(folder / each["label"]).results for each in SUITE["matrix"]["case"]}


@pytest.mark.long
@pytest.mark.parametrize("name", ["apfl", "ditto"])
def test_the_global_model_is_fedavgs_and_personal_ones_are_scored(results, name):
    fedavg, found = results["fedavg"], results[name]
    for field in ("train_loss", "delta_norm", "gradient_norm", "samples", "steps", "client_bytes_up"):
        assert np.array_equal(fedavg[field], found[field], equal_nan=True), field
    assert (found["model_flops"] == 2 * fedavg["model_flops"]).all()
    assert not np.array_equal(fedavg["test_loss"], found["test_loss"])
    assert name == "apfl" or (fedavg["parameter_digest"] != found["parameter_digest"]).all()


@pytest.mark.parametrize("name", ["ditto", "fedala"])
def test_a_client_that_sits_out_keeps_its_score(results, name):
    """With FedALA from its first round on: before, it has no model of its own."""
    took_part, loss = results[name]["participated"], results[name]["test_loss"]
    idle = took_part[1:] == 0
    if name == "fedala":
        idle &= np.cumsum(took_part, axis=0)[:-1] > 0
    assert idle.any()
    assert np.array_equal(loss[1:][idle], loss[:-1][idle])


def test_fedproto_without_attraction_and_by_its_head_is_self_train(results):
    """What travels are two classes of 64 floats, and two sizes."""
    alone, proto, plain = (results[name] for name in ("self-train", "fedproto", "plain"))
    for name in ("train_loss", "test_loss", "test_accuracy", "parameter_digest"):
        assert np.array_equal(alone[name], plain[name], equal_nan=True), name
    assert not np.array_equal(alone["test_accuracy"], proto["test_accuracy"])
    took_part = proto["participated"].astype(int)
    assert np.array_equal(proto["client_bytes_up"], took_part * (4 * 2 * 64 + 4 * 2))
    assert np.array_equal(proto["client_bytes_down"], took_part * 4 * 2 * 64)
