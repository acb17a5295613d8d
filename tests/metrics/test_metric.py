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


def test_a_metric_comes_back_from_json_values():
    plain = RMSE.plain()
    assert (plain["high"], plain["constant"], plain["better"]) == (None, None, "lower")
    assert [Metric.of_plain(each.plain()) for each in METRICS.values()] == list(METRICS.values())
    assert Metric.of_plain(R2.plain()).low == -math.inf


def test_percent_and_points_are_for_shares_that_people_read_so():
    assert (ACCURACY.shown(0.5), ACCURACY.shown(0.01, signed=True)) == ("50.00", "+1.00")
    assert (ACCURACY.points, ACCURACY.heading, ACCURACY.bounded) == (" points", "accuracy %", True)
    assert (RMSE.shown(1.5), RMSE.points, RMSE.heading, RMSE.bounded) == ("1.5000", "", "RMSE", False)
    assert not R2.bounded
    assert (RMSE.field(), RMSE.field("val")) == ("test_rmse", "val_rmse")
    assert METRICS["clustering_f1"].field("val") == "clustering_f1"
