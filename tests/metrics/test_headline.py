"""The score by which a run is judged."""

from __future__ import annotations

import math

import numpy as np

from fedmpi.metrics.headline import headline, scores_text

NAN = math.nan


def results(field, val, test):
    return {f"val_{field}": np.array(val), f"test_{field}": np.array(test)}


def test_higher_roc_auc_is_better():
    found = headline(results("roc_auc", [0.5, 0.8, NAN, 0.8, 0.7], [0.9, 0.6, NAN, 0.7, 0.65]))
    assert (found.name, found.last) == ("ROC-AUC", 0.65)
    assert (found.best_by_validation, found.best_round.tolist()) == (0.6, [1])
    assert found.as_published == 0.9


def test_lower_rmse_is_better():
    found = headline(results("rmse", [2.0, 1.0, 1.5], [1.9, 1.2, 1.1]))
    assert (found.last, found.best_by_validation, found.as_published) == (1.1, 1.2, 1.1)


def test_nothing_evaluated_has_no_score():
    found = headline(results("rmse", [NAN], [NAN]))
    assert all(math.isnan(value) for value in (found.last, found.best_by_validation, found.as_published))


def test_accuracy_is_the_headline_of_classification():
    one = {"val_accuracy": np.array([0.5, 1.0]), "test_accuracy": np.array([NAN, 0.25])}
    assert headline(one) is None
    assert scores_text(one)[0] == "val acc 0.7500  test acc 0.2500"


def test_a_round_is_told_by_its_score():
    one = results("rmse", 1.5, 2.0)
    assert scores_text(one) == ("val RMSE 1.5000  test RMSE 2.0000", "val 1.5000 test 2.0000")
