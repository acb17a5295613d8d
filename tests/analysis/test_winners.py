"""Winners of a sweep: chosen by validation, never by test data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedmpi.analysis.winners import as_suite, winners
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import CLUSTERING_ACCURACY, RMSE
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
    return judged(config, RMSE, {"val_rmse": np.array(val), "test_rmse": np.array(test)}, status)


def judged(config, metric, results, status="complete") -> Run:
    return Run(Path(config["name"]), config, "", "", 2, status, "", 3, 3, (), results, {}, (), (metric,))


def test_the_lowest_validation_error_of_complete_runs_wins_whatever_the_test_error(configs):
    runs = [
        run(configs[0], [3.0, 1.0, 2.0], [2.0, 2.5, 0.5]),
        run(configs[1], [3.0, 2.5, 1.5], [1.0, 1.0, 1.0]),
        run(configs[1], [0.1], [0.1], "interrupted"),
    ]
    (winner,) = winners(runs, ["dataset.name"])
    assert winner.config["optimizer"]["lr"] == 0.1
    assert winner.options == "optimizer.lr=0.1"  # but for what all runs share
    assert (winner.val.mean, winner.test.mean, winner.test_maximum) == (1.0, 2.5, 0.5)
    assert (winner.candidates, winner.metric, winner.group) == (2, RMSE, ("ESOL",))


@pytest.mark.parametrize(
    ("val", "status", "by", "words"),
    [
        (1.0, "interrupted", "model.name", "no complete runs"),
        (np.nan, "complete", "dataset.name", "ESOL: no run has a validation score"),
        (1.0, "complete", "model.heads", r"--by model.heads: "),
        (1.0, "complete", "size", "--by size: "),
    ],
)
def test_what_has_no_winner_is_named(configs, val, status, by, words):
    with pytest.raises(BadInput, match=words):
        winners([run(config, [val], [1.0], status) for config in configs], [by])


def test_an_axis_of_the_suite_groups_runs_and_comes_before_a_setting(configs):
    runs = [run(configs[0], [1.0], [1.0]), run(configs[1], [2.0], [2.0])]
    labels = {config["name"]: {"model": f"size{place}"} for place, config in enumerate(configs)}
    found = [each.group for each in winners(runs, ["model", "dataset.name"], labels)]
    assert found == [("size0", "ESOL"), ("size1", "ESOL")]


def test_the_suite_of_the_winners_runs_their_settings_with_other_seeds(configs, tmp_path):
    found = winners([run(configs[0], [1.0], [1.0])], ["dataset.name", "model.name"])
    assert found[0].options == ""
    path = tmp_path / "winners.toml"
    path.write_text(as_suite(found, "demo/sweep-winners", [7, 8]))
    cases = [item.case for item in check_suite(read(path))]
    assert [case.name for case in cases] == ["ESOL-fedgraphnn-gcn-seed7", "ESOL-fedgraphnn-gcn-seed8"]
    for case in cases:
        own = {**case.config(), "suite": "demo/sweep", "name": configs[0]["name"], "seed": 0}
        assert own == configs[0]


def test_settings_are_compared_by_their_means_over_seeds(configs):
    def repeated(config, seed):
        return {**config, "seed": seed, "partition": {**config["partition"], "seed": seed}}

    runs = [run(repeated(configs[0], seed), [rmse], [rmse]) for seed, rmse in ((1, 0.1), (2, 2.1))]
    runs += [run(repeated(configs[1], seed), [rmse], [rmse]) for seed, rmse in ((1, 1.0), (2, 1.0))]
    (winner,) = winners(runs, ["dataset.name"])
    assert winner.config["optimizer"]["lr"] == 0.01
    assert (winner.val.mean, winner.test.mean, winner.candidates) == (1.0, 1.0, 2)
    assert winner.val.half == 0.0  # of two equal seeds
    assert winner.draws
    axis = 'seed = [{ label = "seed7", seed = 7, partition = { seed = 7 } }]'
    assert axis in as_suite([winner], "a/b", [7])


def test_of_clusters_the_last_round_counts_and_none_is_chosen(configs):
    scored = zip(configs, np.array([[0.9, 0.5], [0.5, 0.6]]), strict=True)
    runs = [judged(each, CLUSTERING_ACCURACY, {"clustering_accuracy": scores}) for each, scores in scored]
    (winner,) = winners(runs, ["dataset.name"])
    assert winner.config["optimizer"]["lr"] == 0.01
    assert (winner.metric, winner.val.mean, winner.test.mean) == (CLUSTERING_ACCURACY, 0.6, 0.6)
    assert winner.test_maximum == 0.9
