"""Winners of a sweep: chosen by validation, never by test data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedmpi.analysis.winners import as_suite, winners
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.store.reader import Run

SUITE = """
name = "demo/sweep"
description = "two rates"
[case]
dataset = { name = "ESOL", scaling = "row-sum" }
partition = "fedgraphnn"
model = "fedgraphnn/gcn"
share = "all"
[matrix]
"optimizer.lr" = [0.1, 0.01]
"""


@pytest.fixture
def configs(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SUITE)
    return [item.case.config() for item in check_suite(read(path))]


def run(config, val, test, status="complete") -> Run:
    results = {
        "val_rmse": np.array(val),
        "test_rmse": np.array(test),
        "val_accuracy": np.full((len(val), 4), np.nan),
        "test_accuracy": np.full((len(val), 4), np.nan),
    }
    return Run(Path(config["name"]), config, "", "", 2, status, "", 3, 3, (), results, {}, ())


def test_the_lowest_validation_error_wins_whatever_the_test_error(configs):
    runs = [
        run(configs[0], [3.0, 1.0, 2.0], [2.0, 2.5, 0.5]),
        run(configs[1], [3.0, 2.5, 1.5], [1.0, 1.0, 1.0]),
    ]
    (winner,) = winners(runs, ["dataset.name"])
    assert winner.config["optimizer"]["lr"] == 0.1
    assert (winner.val, winner.test, winner.test_maximum) == (1.0, 2.5, 0.5)
    assert (winner.candidates, winner.score, winner.group) == (2, "RMSE", ("ESOL",))


def test_unfinished_runs_do_not_count(configs):
    runs = [run(configs[0], [1.0], [1.0], "interrupted"), run(configs[1], [2.0], [2.0])]
    (winner,) = winners(runs, ["model.name"])
    assert winner.config["optimizer"]["lr"] == 0.01
    with pytest.raises(BadInput, match="no complete runs"):
        winners(runs[:1], ["model.name"])


def test_runs_without_a_validation_score_have_no_winner(configs):
    with pytest.raises(BadInput, match="ESOL: no run has a validation score"):
        winners([run(config, [np.nan], [1.0]) for config in configs], ["dataset.name"])


def test_a_setting_that_is_not_there_is_named(configs):
    with pytest.raises(BadInput, match=r"--by model.heads: "):
        winners([run(configs[0], [1.0], [1.0])], ["model.heads"])


def test_the_suite_of_the_winners_runs_their_settings_with_other_seeds(configs, tmp_path):
    found = winners([run(configs[0], [1.0], [1.0])], ["dataset.name", "model.name"])
    path = tmp_path / "winners.toml"
    path.write_text(as_suite(found, "demo/sweep-winners", [7, 8]))
    cases = [item.case for item in check_suite(read(path))]
    assert [case.name for case in cases] == ["ESOL-fedgraphnn-gcn-seed7", "ESOL-fedgraphnn-gcn-seed8"]
    for case in cases:
        own = {**case.config(), "suite": "demo/sweep", "name": configs[0]["name"], "seed": 0}
        assert own == configs[0]
