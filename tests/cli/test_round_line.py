"""One round in a line: the metrics of the run, whatever they are."""

from types import SimpleNamespace

import numpy as np

from fedmpi.cli.progress import round_line
from fedmpi.metrics.metric import ACCURACY, CLUSTERING_ACCURACY, CLUSTERING_F1, MAE, RMSE

NAN = float("nan")


def line(metrics, **results):
    rows = {name: np.array(value) for name, value in {"train_loss": [1.0, 3.0], **results}.items()}
    found = SimpleNamespace(round=2, results=rows, measurements={"round_seconds": np.array(0.5)})
    return round_line(metrics, found, 10)


def test_the_mean_over_the_clients_that_were_evaluated():
    assert line((ACCURACY,), val_accuracy=[0.5, 1.0], test_accuracy=[NAN, 0.25]) == (
        "round  3/10  train loss 2.0000  val accuracy 0.7500  test accuracy 0.2500  0.500 s",
        "val accuracy 0.7500  test accuracy 0.2500",
    )


def test_of_held_out_metrics_the_headline_alone():
    full, short = line((RMSE, MAE), val_rmse=1.5, test_rmse=2.0, val_mae=1.0, test_mae=1.0)
    assert "val RMSE 1.5000  test RMSE 2.0000  0.500 s" in full
    assert short == "val RMSE 1.5000  test RMSE 2.0000"


def test_all_metrics_where_nothing_is_held_out_and_the_headline_in_the_bar():
    full, short = line((CLUSTERING_ACCURACY, CLUSTERING_F1), clustering_accuracy=0.75, clustering_f1=NAN)
    assert "clustering accuracy 0.7500  clustering macro F1 nan" in full
    assert short == "clustering accuracy 0.7500"
