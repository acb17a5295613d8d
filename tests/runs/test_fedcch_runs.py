"""Runs of FedCCH: what its averages, signatures and clusters are made of."""

import numpy as np
import pytest

from fedmpi.store.reader import load_run

SUITE = """
name = "tests/fedcch"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 120 } }
partition = { name = "dirichlet-quantity", clients = 4, alpha = 2.0 }
rounds = 3
[matrix]
method = [
  { label = "fedavg", algorithm = "fedavg" },
  { label = "one", algorithm = { name = "fedcch", cut = "clusters", clusters = 1 } },
]
"""


@pytest.fixture
def runs(fedmpi, tmp_path):
    """Return a function that runs the suite, and the runs by case."""

    def start(*overrides):
        path, folder = tmp_path / "suite.toml", tmp_path / f"runs{len(list(tmp_path.iterdir()))}"
        path.write_text(SUITE)
        options = [part for each in overrides for part in ("--set", each)]
        done = fedmpi("run", path, "--out", folder, *options)
        assert done.returncode == 0, done.stderr
        return {each.name: load_run(each) for each in folder.iterdir() if each.is_dir()}

    return start


def test_one_cluster_is_fedavg_on_clients_of_unequal_sizes(runs):
    found = runs()
    samples = found["one"].results["samples"][0]
    assert len(set(samples.tolist())) > 1
    losses = [found[name].results["test_loss"] for name in ("fedavg", "one")]
    assert np.allclose(*losses, rtol=1e-4)


def test_signatures_are_those_of_trained_models(runs):
    hashes = []
    for rate in ("1e-2", "1e-12"):
        found = runs("method=one", "rounds=1", f"optimizer.lr={rate}")
        (run,) = found.values()
        hashes.append(run.results["signature"][0].tolist())
    assert hashes[0] != hashes[1]
