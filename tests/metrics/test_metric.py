"""The table of metrics, and how people read their values."""

import math
import re
from pathlib import Path

from fedmpi.metrics.metric import ACCURACY, METRICS, R2, RMSE, Metric

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()


def test_the_documented_table_is_that_of_the_product():
    rows = re.findall(
        r"^\| `(\w+)` \| (client|pooled|all) \| (up|down) \| (.*?) \|", DOCUMENTED, re.MULTILINE
    )
    expected = [(each.name, each.scope, "up" if each.higher else "down") for each in METRICS.values()]
    assert [row[:3] for row in rows] == expected
    ranges = {"0 to 1": (0.0, 1.0), "from 0": (0.0, math.inf), "to 1": (-math.inf, 1.0)}
    assert [ranges[row[3]] for row in rows] == [(each.low, each.high) for each in METRICS.values()]


def test_percent_and_points_are_for_shares_that_people_read_so():
    assert (ACCURACY.shown(0.5), ACCURACY.shown(0.01, signed=True), ACCURACY.points) == (
        "50.00",
        "+1.00",
        " points",
    )
    assert (RMSE.shown(1.5), RMSE.points, RMSE.heading, ACCURACY.heading) == (
        "1.5000",
        "",
        "RMSE",
        "accuracy %",
    )


def test_points_are_of_what_lies_between_0_and_1():
    assert ACCURACY.bounded and not RMSE.bounded and not R2.bounded


def test_fields_of_parts_and_of_all_examples():
    assert (RMSE.field(), RMSE.field("val")) == ("test_rmse", "val_rmse")
    assert METRICS["clustering_f1"].field("val") == "clustering_f1"


def test_a_metric_comes_back_from_json_values():
    plain = RMSE.plain()
    assert (plain["high"], plain["constant"], plain["better"]) == (None, None, "lower")
    assert [Metric.of_plain(each.plain()) for each in METRICS.values()] == list(METRICS.values())
    assert Metric.of_plain(R2.plain()).low == -math.inf
