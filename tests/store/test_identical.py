import numpy as np

from fedmpi.store.identical import compare, differences


def test_two_runs_with_the_same_numbers_are_identical(whole, case):
    verdict = compare(whole, case)
    assert (verdict.datasets, verdict.rounds, verdict.differences) == (21, 6, ())


def test_one_bit_is_found_and_placed(tmp_path, case, finished_run):
    def change(index, results):
        if index == 4:
            results["train_loss"][1] = 0.0  # was -0.0

    assert differences(case, finished_run(tmp_path / "b", change=change)) == [
        "/rounds/train_loss: -0.0 -> 0.0 in round 5, client beta (1 of 12 values differ)"
    ]


def test_nan_of_any_sign_equals_nan(tmp_path, case, finished_run):
    def change(index, results):
        results["val_loss"][0] = np.copysign(np.nan, -1.0)

    assert differences(case, finished_run(tmp_path / "b", change=change)) == []


def test_configuration_and_length_are_named(tmp_path, finished_run):
    a = finished_run(tmp_path / "a", config={"algorithm": {"name": "fedprox", "mu": 0.01}, "seed": 1})
    b = finished_run(tmp_path / "b", rounds=5, config={"algorithm": {"name": "fedprox", "mu": 0.1}})
    assert differences(a, b) == [
        "config algorithm.mu: 0.01 -> 0.1",
        "config seed: 1 -> (not set)",
        "rounds_completed: 6 -> 5",
    ]
