"""The figures of a run follow from its metrics, also from those that fedmpi does not know."""

import math

import numpy as np
import pytest

from fedmpi.analysis import scores
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric
from fedmpi.store.reader import load_run
from tests.analysis.tasks import FIELDS, LOSSES, METRICS, field

NAN = math.nan
ERROR = Metric("count_error", "count error", "lower", "client", "label", high=math.inf)
SPREAD = Metric("spread", "spread", scope="all")


def by_client(name, val, test):
    return {f"val_{name}": val, f"test_{name}": test}


def test_a_strangers_error_by_client_under_the_three_rules(tmp_path, make_judged):
    fields = (*LOSSES, field("val_count_error"), field("test_count_error"), field("spread", ""))
    rounds = [
        by_client("count_error", [4.0, 2.0], [5.0, 1.0]) | {"spread": 0.5},
        by_client("count_error", [3.0, 2.0], [4.0, 7.0]) | {"spread": 0.25},
        by_client("count_error", [6.0, 8.0], [2.0, 3.0]) | {"spread": NAN},
    ]
    partition = {"constant_count_error": [6.0, 8.0]}
    run = load_run(make_judged(tmp_path / "run", (ERROR, SPREAD), fields, rounds, partition))
    found = summarise(run, target=2.6)
    assert (found["metric"], found["constant"]) == ("count_error", 7.0)
    assert found["test_count_error"] == 2.5
    assert found["test_count_error_best_by_validation"] == 2.5  # a: round 2, b: round 1
    assert found["test_count_error_as_published"] == 2.5  # no split
    assert (found["worst_client"], found["worst_client_count_error"]) == ("b", 3.0)
    assert found["lowest_decile_count_error"] == 3.0
    assert found["spread"] == 0.25
    assert "test_accuracy" not in found and "test_count_error_without_twins" not in found
    assert found["to_target"]["rounds"] == 2  # validation means 3.0, 2.5, 7.0
    assert found["to_target_on_test_data"]["rounds"] == 3  # test means 3.0, 5.5, 2.5
    rows = per_client(run)
    names = ("test_count_error", "val_count_error", "test_count_error_best_by_validation")
    assert [[row[name] for row in rows] for name in names] == [[2.0, 3.0], [6.0, 8.0], [4.0, 1.0]]
    assert "spread" not in rows[0]
    words = r"--target -1: count error lies between 0 and inf; give a value of it"
    with pytest.raises(BadInput, match=words):
        summarise(run, target=-1)


def test_splits_of_an_error_are_published_by_their_least(tmp_path, make_judged):
    fields = (*LOSSES, field("val_count_error"), field("test_count_error"))
    rounds = [
        by_client("count_error", [1.0, 1.0], [5.0, 1.0]) | {"group": [0, 0]},
        by_client("count_error", [1.0, 1.0], [2.0, 3.0]) | {"group": [0, 1]},
    ]
    run = load_run(make_judged(tmp_path / "run", (ERROR,), fields, rounds))
    assert scores.values(run, ERROR, scores.PUBLISHED).tolist() == [2.0, 1.0]


def test_pooled_scores_have_their_rules_and_so_have_means_over_clients(tmp_path, make_scored):
    val, test = [0.5, 0.8, NAN, 0.8, 0.7], [0.9, 0.6, NAN, 0.7, 0.65]
    run = load_run(make_scored(tmp_path / "run", "roc_auc", test, val=val))
    found = summarise(run)
    assert (found["metric"], found["constant"]) == ("roc_auc", 0.5)
    assert found["test_roc_auc"] == 0.65
    assert found["test_roc_auc_best_by_validation"] == 0.6
    assert found["test_roc_auc_as_published"] == 0.9
    assert (found["test_prc_auc"], found["test_prc_auc_as_published"]) == (0.325, 0.45)
    assert found["client_test_roc_auc"] == 0.65
    assert found["client_test_roc_auc_as_published"] == 0.9
    assert "worst_client" not in found
    assert scores.best_rounds(run, run.headline).tolist() == [1]
    assert [row["test_roc_auc"] for row in per_client(run)] == [0.65, 0.65]


@pytest.mark.parametrize(
    ("test", "val", "scored"),
    [([1.9, 1.2, 1.1], [2.0, 1.0, 1.5], [1.1, 1.2, 1.1]), ([NAN], [NAN], [NAN] * 3)],
)
def test_lower_rmse_is_better_and_nothing_evaluated_has_no_score(tmp_path, make_scored, test, val, scored):
    found = summarise(load_run(make_scored(tmp_path / "run", "rmse", test, val=val, constant=1.5)))
    names = ("test_rmse", "test_rmse_best_by_validation", "test_rmse_as_published", "constant")
    np.testing.assert_array_equal([found[name] for name in names], [*scored, 1.5])


def test_clusters_count_in_the_last_evaluated_round_alone(tmp_path, make_judged):
    rounds = [
        {"clustering_accuracy": 0.5, "clustering_f1": 0.25, "train_loss": [1.0, 2.0]},
        {"clustering_accuracy": 0.75, "clustering_f1": 0.5, "train_loss": [0.5, 1.0]},
        {"clustering_accuracy": NAN, "clustering_f1": NAN, "train_loss": [0.25, 0.75]},
    ]
    name = "clustering_accuracy"
    run = load_run(make_judged(tmp_path / "run", METRICS[name], FIELDS[name], rounds))
    found = summarise(run, target=0.7)
    assert (found["clustering_accuracy"], found["clustering_f1"]) == (0.75, 0.5)
    assert "clustering_accuracy_as_published" not in found and math.isnan(found["constant"])
    assert found["to_target"]["rounds"] == 2
    assert [row["train_loss"] for row in per_client(run)] == [0.25, 0.75]
    assert "test_loss" not in per_client(run)[0]


def test_curves_are_means_over_the_clients_evaluated(tmp_path, make_run):
    run = load_run(make_run(tmp_path / "run", [[0.25, 0.75], [NAN, 0.5], [NAN, NAN]]))
    expected = [0.5, 0.5, NAN]
    assert np.array_equal(scores.curve(run.results, run.headline), expected, equal_nan=True)
    assert scores.rules(run.headline) == ("last round", "best by validation", "as published")
    assert scores.rules(SPREAD) == ("last round",)


HOSTILE = np.array([True, True, False, False, False])


@pytest.mark.parametrize(
    ("group", "together", "exposed"),
    [
        ([0, 0, 0, 0, 0], 0.4, 1.0),  # nothing split
        ([1, 1, 0, 0, 0], 1.0, 0.0),  # isolated together
        ([1, 2, 0, 0, 0], 1.0, 0.0),  # each alone
        ([0, 1, 0, 1, 2], 0.5, 2 / 3),
    ],
)
def test_isolated_attackers_are_among_themselves(group, together, exposed):
    assert scores.company(np.array(group), HOSTILE) == pytest.approx((together, exposed))
