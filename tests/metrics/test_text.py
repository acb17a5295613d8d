"""The metrics of a round in words."""

import numpy as np

from fedmpi.metrics.metric import ACCURACY, CLUSTERING_ACCURACY, CLUSTERING_F1, MAE, RMSE
from fedmpi.metrics.text import scores_text


def test_a_value_by_client_is_their_mean():
    one = {"val_accuracy": np.array([0.5, 1.0]), "test_accuracy": np.array([np.nan, 0.25])}
    assert scores_text([ACCURACY], one)[0] == "val accuracy 0.7500  test accuracy 0.2500"


def test_a_round_is_told_by_its_headline():
    one = {"val_rmse": np.array(1.5), "test_rmse": np.array(2.0), "test_mae": np.array(1.0)}
    assert scores_text([RMSE, MAE], one) == ("val RMSE 1.5000  test RMSE 2.0000", "val 1.5000 test 2.0000")


def test_what_is_not_held_out_is_told_in_full():
    one = {"clustering_accuracy": np.array(0.5), "clustering_f1": np.array(0.25)}
    full, short = scores_text([CLUSTERING_ACCURACY, CLUSTERING_F1], one)
    assert full == "clustering accuracy 0.5000  clustering macro F1 0.2500"
    assert short == "clustering accuracy 0.5000"
