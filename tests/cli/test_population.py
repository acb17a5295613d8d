"""A run whose clients are sampled from a population."""

import numpy as np
import pytest

from fedmpi.store.reader import load_run
from tests.cli.refusals import refused

SUITE = """
name = "sampled"
[case]
dataset = { synthetic = { domains = 1, graphs = 200 } }
partition = { name = "population", population = 100000, clients = 4, graphs = 6 }
optimizer = { state = "reset" }
share = "all"
rounds = 3
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "sampled.toml").write_text(SUITE)
    return "sampled.toml"


def test_the_record_says_who_was_sampled_and_its_size_is_that_of_a_round(fedmpi, suite, tmp_path):
    done = fedmpi("run", suite, "--out", "runs", code=0)
    assert "each round samples 4 of 100,000 clients" in done.stdout
    run = load_run(next((tmp_path / "runs").iterdir()))
    sampled = run.results["client_id"]
    assert sampled.shape == (3, 4)
    assert len(np.unique(sampled)) == 12 and sampled.max() < 100000
    assert (run.results["samples"] == 6).all()
    assert int(run.partition["population"]) == 100000
    assert (run.partition["test_twin_own"] == 0).all()


def test_batches_smaller_than_a_client_are_drawn_of_its_graphs(fedmpi, suite, tmp_path):
    for kernels in ("compiled", "csr"):
        given = ("--set", f"kernels={kernels}", "--set", "batch_size=4")
        fedmpi("run", suite, "--out", kernels, *given, code=0)
    runs = [load_run(next((tmp_path / kernels).iterdir())) for kernels in ("compiled", "csr")]
    assert (runs[0].results["steps"] == 2).all()
    np.testing.assert_allclose(runs[0].results["train_loss"], runs[1].results["train_loss"], rtol=1e-3)


def test_a_tensor_that_stays_on_a_client_is_refused(fedmpi, suite):
    done = fedmpi("run", suite, "--set", "share=conv")
    refused(done, "stays on a client, which is gone after its round")


def test_privacy_counts_the_population(fedmpi, suite, tmp_path):
    private = ("--set", "weights=equal", "--set", "privacy=central", "--set", "privacy.noise_multiplier=1.0")
    for population in (4, 100000):
        given = ("--set", f"partition.population={population}", "--out", f"of{population}")
        fedmpi("run", suite, *private, *given, code=0)
    few, many = (load_run(next((tmp_path / f"of{n}").iterdir())).results["epsilon"][-1] for n in (4, 100000))
    assert many < few / 5
