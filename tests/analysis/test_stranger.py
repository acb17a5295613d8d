"""A metric that fedmpi does not know shows everywhere: its definition comes with the record of a plug-in's task."""

import csv
import json
import math

import numpy as np
import pytest

from fedmpi.analysis import tensorboard
from fedmpi.metrics.metric import Metric
from fedmpi.store.reader import load_run
from tests.analysis.tasks import LOSSES, field

DEVIANCE = Metric("deviance", "Poisson deviance", "lower", "pooled", "label", high=math.inf)
FIELDS = (*LOSSES, field("val_deviance", ""), field("test_deviance", ""))
SETTINGS = {"suite": "made/up", "model": {"name": "gin"}, "objective": {"name": "supervised"}}
SETTINGS |= {"partition": {"name": "iid", "seed": 1}}


@pytest.fixture
def runs(make_judged, tmp_path):
    """Two runs, FedAvg with deviance 1.5 and FedProx with 1.25 in the last round, which is not its best by validation."""
    partition = {"sizes": np.array([[8, 2, 2], [6, 1, 2]]), "constant_deviance": [4.0]}
    for algorithm, val, test in (("fedavg", (3.0, 2.0), (2.5, 1.5)), ("fedprox", (2.0, 2.25), (1.75, 1.25))):
        rounds = [{"val_deviance": v, "test_deviance": t} for v, t in zip(val, test, strict=True)]
        settings = {**SETTINGS, "name": algorithm, "algorithm": {"name": algorithm}}
        make_judged(tmp_path / "runs" / algorithm, (DEVIANCE,), FIELDS, rounds, partition, settings)
    return tmp_path / "runs"


def test_report(fedmpi, runs):
    shown = fedmpi("report", runs, "--by", "case").stdout
    assert "deviance" in shown and "score" not in shown  # it is in the heading
    lines = {line.split()[0]: line.split()[7:11] for line in shown.splitlines() if line.startswith("fed")}
    assert lines == {
        "fedavg": ["1.5000", "1.5000", "1.5000", "4.0000"],  # last, by validation, as published, constant
        "fedprox": ["1.2500", "1.7500", "1.2500", "4.0000"],
    }
    found = json.loads(fedmpi("report", runs / "fedprox", "--json", "--target", "2").stdout)[0]
    assert (found["metric"], found["test_deviance"], found["to_target"]["rounds"]) == ("deviance", 1.25, 1)
    (row,) = [line for line in fedmpi("report", runs, "--markdown").stdout.splitlines() if "FedProx" in line]
    cells = "**1.2500** | +0.2500 | one pair only | 1.7500 | 1.2500 | 4.0000 | 2 | 1"
    assert row.startswith(f"| MADE-UP | FedProx | {cells} |")


def test_page(fedmpi, runs, tmp_path):
    assert fedmpi("report", runs, "--html", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert (
        "<strong>FedProx</strong> has the best test Poisson deviance in the last round, 1.2500 (lower is better), "
        "+0.2500 against FedAvg: one pair only. The same prediction for every example would score "
        "4.0000 (lower is better)."
    ) in page
    assert "Test Poisson deviance, lower is better" in page and "Validation Poisson deviance" in page
    assert "accuracy" not in page


def test_compare_and_select(fedmpi, runs):
    done = fedmpi("compare", runs / "fedprox", runs / "fedavg", "--fail-if-less-accurate", "10%")
    assert done.returncode == 1
    assert "FAILED: test Poisson deviance, last round: +0.2500 (+10 % allowed)" in done.stdout
    assert "INVALID" in done.stdout
    assert "Poisson deviance 0.2500 above the reference (1 % allowed)" in done.stdout
    (row,) = [line for line in fedmpi("paper", "select", runs).stdout.splitlines() if "fedprox" in line]
    assert "Poisson deviance  2.0000  1.7500" in row


def test_watch(fedmpi, runs):
    lines = [line.split("  ") for line in fedmpi("watch", runs / "fedavg", "--once").stdout.splitlines()]
    own = [line for line in lines if line[0].endswith("deviance")]
    shown = {line[0]: [part.strip() for part in line[1:] if part] for line in own}
    assert shown == {"val Poisson deviance": ["2", "█▁"], "test Poisson deviance": ["1.5", "█▁"]}
    said = "val Poisson deviance 2.0000  test Poisson deviance 1.5000"
    assert said in fedmpi("watch", runs / "fedavg").stdout


def test_rows_and_exports(fedmpi, runs, tmp_path):
    assert fedmpi("report", runs, "--csv", "rows.csv").returncode == 0
    with (tmp_path / "rows.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    scores = ("metric", "client", "score", "score_best_by_validation", "constant_score")
    assert [rows[1][name] for name in scores] == ["deviance", "all clients", "1.25", "1.75", "4.0"]
    assert fedmpi("export", runs, "--tensorboard", "events").returncode == 0
    found = {(tag, step): value for tag, step, _, value in tensorboard.scalars(load_run(runs / "fedprox"))}
    assert [found["score/test_deviance", step] for step in (1, 2)] == [1.75, 1.25]
    assert len(list((tmp_path / "events").rglob("events.out.*"))) == 2
