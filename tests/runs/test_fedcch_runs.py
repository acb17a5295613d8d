"""Runs of FedCCH: what its averages, signatures and clusters are made of."""

import numpy as np

from tests.started import runs_of

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


def test_one_cluster_is_fedavg_on_clients_of_unequal_sizes(fedmpi, tmp_path):
    found = runs_of(fedmpi, tmp_path, SUITE)
    assert len(set(found["one"].results["samples"][0].tolist())) > 1
    losses = [found[name].results["test_loss"] for name in ("fedavg", "one")]
    assert np.allclose(*losses, rtol=1e-4)


def test_signatures_are_those_of_trained_models(fedmpi, tmp_path):
    hashes = []
    for rate in ("1e-2", "1e-12"):
        (run,) = runs_of(fedmpi, tmp_path, SUITE, "method=one", "rounds=1", f"optimizer.lr={rate}").values()
        hashes.append(run.results["signature"][0].tolist())
    assert hashes[0] != hashes[1]
