"""Runs judged by ROC-AUC or RMSE in `fedmpi report`."""

import io
import json

import pytest

from fedmpi.cli.progress import Console

NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "target", "rounds", "on_test_data"),
    [("roc_auc", "0.7", 2, 3), ("rmse", "1.5", 2, 1), ("rmse", "0.1", None, None)],
)
def test_a_target_is_held_against_the_validation_score(
    fedmpi, make_scored, tmp_path, name, target, rounds, on_test_data
):
    val, test = (
        ([0.6, 0.7, 0.8], [0.5, 0.6, 0.7]) if name == "roc_auc" else ([3.0, 1.5, 1.0], [1.2, 1.1, 1.0])
    )
    make_scored(tmp_path / "a", name, test, val=val)
    (found,) = json.loads(fedmpi("report", "a", "--json", "--target", target).stdout)
    reached = [found[label] and found[label]["rounds"] for label in ("to_target", "to_target_on_test_data")]
    assert reached == [rounds, on_test_data]


def test_a_roc_auc_above_1_is_no_target(fedmpi, make_scored, tmp_path):
    make_scored(tmp_path / "a", "roc_auc", [0.6])
    done = fedmpi("report", "a", "--target", "70")
    assert done.returncode == 2
    assert "--target 70.0: ROC-AUC lies between 0 and 1" in done.stderr


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


def test_at_most_30_tasks_are_printed(fedmpi, make_scored, tmp_path):
    names = [f"assay-{number}" for number in range(1, 34)]
    make_scored(tmp_path / "a", "rmse", [[1.0] * 33], names=names)
    shown = fedmpi("report", "a").stdout
    assert "assay-30 " in shown and "assay-31" not in shown
    assert "... 3 more tasks" in shown
    (found,) = json.loads(fedmpi("report", "a", "--json").stdout)
    assert len(found["per_task"]) == 33
    assert (found["test_mae"], found["test_r2"]) == (0.5, 0.5)


def test_accuracy_has_no_tasks(fedmpi, make_run, tmp_path):
    make_run(tmp_path / "a", [[0.5]])
    assert "per_task" not in json.loads(fedmpi("report", "a", "--json").stdout)[0]
    assert " task " not in fedmpi("report", "a").stdout
