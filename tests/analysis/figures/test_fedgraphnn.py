"""Pictures of FedGraphNN: sample counts of a partition, scores during a sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.analysis.figures.style import caption
from fedmpi.metrics.metric import ROC_AUC


@pytest.fixture
def sweep(record):
    """Return a function that records a run with ROC-AUCs by round."""

    def make(lr, val, test):
        settings = {"model": {"name": "fedgraphnn/gcn"}, "optimizer": {"name": "adam", "lr": lr}}
        run = record(settings, train_loss=[[1.0, 1.0]] * 3)
        results = {"val_roc_auc": np.array(val), "test_roc_auc": np.array(test)}
        return replace(run, results=results, metrics=(ROC_AUC,))

    return make


def test_bars_are_the_training_graphs_of_each_client(record, draw):
    settings = {"partition": {"name": "fedgraphnn", "alpha": 0.2}}
    run = record(settings, test_loss=[[1.0, 2.0]])
    run = replace(run, partition={"sizes": np.array([[5, 1, 1], [1061, 3, 3]])})
    (axis,) = draw("sample-counts", [run, run]).axes
    assert [bar.get_height() for bar in axis.patches] == [5, 1061]
    assert axis.get_title(loc="left") == "PROTEINS: 2 clients, alpha 0.2"


def test_the_winner_by_validation_is_marked_and_not_the_best_on_test_data(sweep, draw):
    runs = [sweep(0.1, [0.6, 0.9, 0.7], [0.5, 0.6, 0.7]), sweep(0.2, [0.5, 0.6, 0.6], [0.8, 0.85, 0.9])]
    picture = draw("scores", runs)
    (axis,) = picture.axes
    lines = [list(line.get_ydata()) for line in axis.lines]
    assert [0.5, 0.6, 0.7] in lines
    assert [0.8, 0.85, 0.9] in lines
    (dot,) = (line for line in axis.lines if line.get_marker() == "o")
    assert (list(dot.get_xdata()), list(dot.get_ydata())) == ([2], [0.6])
    assert axis.lines[-1].get_ydata()[0] == 0.9
    assert axis.get_title(loc="left") == "PROTEINS, fedgraphnn/gcn, FedAvg"
    assert "best validation score" in caption(picture)
