"""GCFL's setting on the real PROTEINS, from the mirror."""

from fedmpi.store.reader import load_run
from tests.started import sets


def test_gcfls_proteins_setting(fedmpi, real_data, tmp_path):
    fedmpi("run", "gcfl/proteins", "--set", "algorithm=fedavg", "--set", "rounds=3", "--out", "runs", code=0)
    run = load_run(tmp_path / "runs" / "fedavg-rounds=3")
    (attempt,) = run.attempts
    assert attempt.provenance["parameters"] == [29_506] * 10
    assert attempt.provenance["shared_parameters"] == 24_960
    assert run.partition["sizes"].sum(axis=1).tolist() == [109, 114, 101, 123, 107, 111, 107, 128, 103, 110]
    assert (run.results["steps"] == 1).all()
    assert run.results["train_loss"][2].mean() < run.results["train_loss"][0].mean()


def test_a_group_has_one_client_per_dataset_and_shares_the_convolutions(fedmpi, real_data, tmp_path):
    options = ["dataset=gcfl/molecules", "partition=per-dataset", "algorithm=fedavg", "rounds=1"]
    fedmpi("run", "gcfl/proteins", *sets(*options), "--out", "runs", code=0)
    (folder,) = (tmp_path / "runs").iterdir()
    run = load_run(folder)
    assert run.clients == ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "AIDS", "NCI1")
    assert run.results["steps"][0].tolist() == [2, 3, 3, 5, 3, 13, 26]
    costs = run.attempts[0].provenance["client_costs"]
    assert max(costs) == costs[6]


def test_verify_says_ok_and_what_was_checked(fedmpi, real_data):
    fedmpi("data", "fetch", "MUTAG", code=0)
    done = fedmpi("data", "verify", "MUTAG", code=0)
    sizes = "188 graphs, 3,371 nodes, 7,442 edges"
    assert done.stdout.startswith(f"MUTAG: ok, {sizes}; content has the digest noted and the known one: ")
