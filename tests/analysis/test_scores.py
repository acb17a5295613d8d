"""Runs judged by ROC-AUC or RMSE in `fedmpi report`."""

import io
import json

import pytest

from fedmpi.cli.progress import Console

NAN = float("nan")


def test_a_target_of_accuracy_is_advised_only_where_accuracy_counts(make_run, make_scored, tmp_path):
    make_run(tmp_path / "a", [[0.5]])
    make_scored(tmp_path / "b", "rmse", [1.5])
    assert advice(tmp_path / "a").endswith("--target 0.7; fedmpi --help")
    assert advice(tmp_path / "b").endswith("--html page.html; fedmpi --help")


def advice(folder):
    stream = io.StringIO()
    Console(stream).finish([folder])
    return " ".join(stream.getvalue().partition("Next: ")[2].split())


def test_tasks_and_further_scores_of_the_last_round(fedmpi, make_scored, tmp_path):
    make_scored(tmp_path / "a", "roc_auc", [[0.1, 0.2, 0.3], [0.6, NAN, 0.8]], names=("x", "y", "z"))
    (found,) = json.loads(fedmpi("report", "a", "--json").stdout)
    assert found["test_prc_auc"] == pytest.approx(0.35)
    assert found["test_tasks_left_out"] == 1
    assert [(row["task"], row["test_roc_auc"], row["val_prc_auc"]) for row in found["per_task"]] == [
        ("x", 0.6, 0.3),
        ("y", None, None),
        ("z", 0.8, 0.4),
    ]
    shown = fedmpi("report", "a").stdout
    assert shown.index("\nclient  rounds") < shown.index("\ntask  ROC-AUC")
    assert ["z", "0.8000", "0.8000", "0.4000", "0.4000"] in [line.split() for line in shown.splitlines()]


def test_at_most_30_tasks_are_printed_and_none_of_accuracy(fedmpi, make_run, make_scored, tmp_path):
    names = [f"assay-{number}" for number in range(1, 34)]
    make_scored(tmp_path / "a", "rmse", [[1.0] * 33], names=names)
    shown = fedmpi("report", "a").stdout
    assert "assay-30 " in shown and "assay-31" not in shown
    assert "... 3 more tasks" in shown
    (found,) = json.loads(fedmpi("report", "a", "--json").stdout)
    assert len(found["per_task"]) == 33
    assert (found["test_mae"], found["test_r2"]) == (0.5, 0.5)
    make_run(tmp_path / "b", [[0.5]])
    assert "per_task" not in json.loads(fedmpi("report", "b", "--json").stdout)[0]
    assert " task " not in fedmpi("report", "b").stdout
