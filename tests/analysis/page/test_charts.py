import html
import re

import numpy as np
import pytest

from fedmpi.analysis.page.axes import path, scale, shown, thinned
from fedmpi.analysis.page.charts import Axes, Line, lines, stack, timeline
from fedmpi.analysis.page.marks import Bars, Violin, bars, heat_map, violins


def test_ticks_are_round_and_within_the_range():
    ticks = [shown(tick) for tick in scale([0.52, 0.79], 200, 0).ticks()]
    assert ticks == ["0.55", "0.6", "0.65", "0.7", "0.75", "0.8"]
    ticks = [shown(tick) for tick in scale([0.02, 900], 200, 0, log=True).ticks()]
    assert ticks == ["0.1", "1", "10", "100", "1,000"]


def test_a_scale_of_nothing_and_of_one_value():
    assert scale([], 0, 100).ticks()
    one = scale([3.0, float("nan")], 0, 100)
    assert float(one(3.0)) == pytest.approx(50)


def test_a_path_is_relative_in_tenths_and_breaks_where_a_value_is_missing():
    x, nan = np.arange(4.0), float("nan")
    assert path(x, np.array([1.0, 2, 2, 0])) == "M0 10l10 10 10 0 10-20"
    assert path(x, np.array([1.0, nan, 2, 2])) == "M0 10lm20 10l0 0 10 0"
    assert path(x, np.full(4, nan)) == ""


def test_thinning_keeps_both_ends():
    assert thinned(3, 5).tolist() == [0, 1, 2]
    assert thinned(1000, 3).tolist() == [0, 500, 999] or thinned(1000, 3).tolist() == [0, 499, 999]


def test_lines_carry_their_series_and_their_scale():
    drawn = Line("FedAvg", "FedAvg", 0, 1, np.array([0.5, 0.6]), np.array([0.4, 0.5]), np.array([0.6, 0.7]))
    chart = lines(Axes("Test accuracy", "PROTEINS", "test accuracy (%)", factor=100.0), [drawn])
    assert chart.count('data-series="FedAvg"') == 2  # the band and the line
    assert 'aria-label="PROTEINS: Test accuracy, test accuracy (%) by round, 1 lines"' in chart
    assert '"log": false' in html.unescape(str(chart))


def test_the_timeline_keeps_clusters_together_and_says_who_was_where():
    group = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]])
    chart = timeline("Clusters", ["a", "b", "c"], group)
    assert chart.count("<rect") == 4
    assert "b, rounds 1 to 1: cluster 1 of 3 (a, b, c)" in chart
    assert "b, rounds 2 to 3: cluster 2 of 1 (b)" in chart
    assert [chart.index(f">{name}</text>") for name in "acb"] == sorted(
        chart.index(f">{name}</text>") for name in "acb"
    )


def test_areas_of_all_rounds_lie_within_the_axes():
    chart = str(stack("Time", "seconds", ["train"], np.ones((4, 1))))
    assert 'd="M520 ' in chart  # the first round begins at the left axis, in tenths of a unit
    assert re.findall(r'class="tick middle" x="([0-9.]+)" y="221.0">(\d+)<', chart) == [
        ("94.5", "1"), ("179.5", "2"), ("264.5", "3"), ("349.5", "4")
    ]  # fmt: skip
    alone = str(timeline("Clusters", ["a"], np.zeros((1, 1), int)))
    assert 'x="72.0" y="8.5" width="320.0"' in alone


def test_marks_say_their_numbers():
    violin = violins("Gains", "points", [Violin("F", "F", 0, ["a", "b"], np.array([1.0, -0.5]))])
    assert "<title>a: +1.00</title>" in violin and "<title>F: mean +0.25</title>" in violin
    heat = heat_map("Ranks", "s", ["rank 0", "rank 1"], ["train"], np.array([[1.0], [2.0]]))
    assert "<title>rank 1, train: 2 s</title>" in heat
    stacked = bars("Time", "s", Bars(["F"], ["train", "wait"], np.array([[3.0, 1.0]]), ["train 75%"], "s"))
    assert "<title>F, train: 3 s, 75 %</title>" in stacked
