import html
import re

import numpy as np
import pytest

from fedmpi.analysis.names import ORDER, algorithm_looks
from fedmpi.analysis.page.axes import path, scale, shown, thinned
from fedmpi.analysis.page.charts import Line, lines, stack, timeline
from fedmpi.analysis.page.marks import Point, Violin, bars, heat_map, scatter, violins
from fedmpi.analysis.page.units import MEGABYTES, SECONDS, human


def test_ticks_are_round_and_within_the_range():
    ticks = [shown(tick) for tick in scale([0.52, 0.79], 200, 0).ticks()]
    assert ticks == ["0.55", "0.6", "0.65", "0.7", "0.75", "0.8"]
    ticks = [shown(tick) for tick in scale([0.02, 900], 200, 0, log=True).ticks()]
    assert ticks == ["0.1", "1", "10", "100", "1,000"]


def test_a_scale_of_nothing_and_of_one_value():
    assert scale([], 0, 100).ticks()
    one = scale([3.0, float("nan")], 0, 100)
    assert float(one(3.0)) == pytest.approx(50)


def test_a_path_is_relative_in_tenths_and_goes_through_what_has_a_value():
    x, nan = np.arange(4.0), float("nan")
    assert path(x, np.array([1.0, 2, 2, 0])) == "M0 10l10 10 10 0 10-20"
    assert path(x, np.array([1.0, nan, 2, 2])) == "M0 10l20 10 10 0"
    assert path(x, np.full(4, nan)) == ""
    assert path(x, np.array([nan, 1.0, nan, nan])) == "M10 10h0"


def test_a_line_evaluated_in_few_of_many_rounds_has_all_of_their_points():
    values = np.full(1000, np.nan)
    values[9::10] = np.linspace(0.5, 0.7, 100)
    chart = str(lines("A", ("P", "a"), [Line("F", 0, 0, values)]))
    steps = re.search(r'class="line.*? d="M[0-9 ]+l([^"]*)"', chart).group(1)
    assert len(re.findall(r"-?[0-9]+", steps)) == 2 * 99


def test_thinning_keeps_both_ends():
    assert thinned(3, 5).tolist() == [0, 1, 2]
    assert thinned(1000, 3).tolist() == [0, 500, 999] or thinned(1000, 3).tolist() == [0, 499, 999]


def test_lines_carry_their_series_and_their_scale():
    drawn = Line("FedAvg", 0, 1, np.array([50.0, 60]), [np.array([40.0, 50]), np.array([60.0, 70])])
    chart = lines("Test accuracy", ("PROTEINS", "test accuracy (%)"), [drawn])
    assert chart.count('data-series="FedAvg"') == 2  # the band and the line
    assert 'aria-label="PROTEINS: Test accuracy, test accuracy (%) by round, 1 lines"' in chart
    assert '"log": false' in html.unescape(str(chart))


def test_the_timeline_keeps_clusters_together_and_says_who_was_where():
    group = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]])
    chart = timeline("Clusters", ["a", "b", "c"], group)
    assert chart.count("<rect") == 4
    assert "b, rounds 1 to 1: cluster 1 of 3 (a, b, c)" in chart
    assert "b, rounds 2 to 3: cluster 2 of 1 (b)" in chart
    places = [chart.index(f">{name}</text>") for name in "acb"]
    assert places == sorted(places)


def test_areas_of_all_rounds_lie_within_the_axes():
    chart = str(stack("Time", "seconds", ["train"], np.ones((4, 1))))
    assert 'd="M520 ' in chart  # the first round begins at the left axis, in tenths of a unit
    assert re.findall(r'class="tick middle" x="([0-9.]+)" y="221.0">(\d+)<', chart) == [
        ("94.5", "1"), ("179.5", "2"), ("264.5", "3"), ("349.5", "4")
    ]  # fmt: skip
    alone = str(timeline("Clusters", ["a"], np.zeros((1, 1), int)))
    assert 'x="72.0" y="8.5" width="320.0"' in alone


def test_marks_say_their_numbers():
    violin = violins("Gains", "points", [Violin("F", 0, ["a", "b"], np.array([1.0, -0.5]))])
    assert "<title>a: +1.00</title>" in violin and "<title>F: mean +0.25</title>" in violin
    heat = heat_map("Ranks", "s", ["rank 0", "rank 1"], ["train"], np.array([[1.0], [2.0]]))
    assert "<title>rank 1, train: 2 s</title>" in heat
    stacked = bars("Time", "s", [("F", "train 75%")], ["train", "wait"], np.array([[180.0, 60.0]]), SECONDS)
    assert "<title>F, train: 3.00 min, 75 %</title>" in stacked and ">s (min)</text>" in stacked


def test_lines_that_coincide_are_named_and_the_covered_one_is_wider():
    same, other = np.array([0.5, 0.6]), np.array([0.5, 0.7])
    drawn = [Line("ABC"[place], place, 0, values) for place, values in enumerate((same, other, same))]
    chart = str(lines("Accuracy", ("P", "accuracy"), drawn))
    assert '<p class="note">A, C coincide.</p>' in chart
    widths = re.findall(r'data-series="(.)"[^>]*?style="stroke-width:([0-9.]+)"', chart)
    assert widths == [("A", "4.7")]


def test_a_band_far_wider_than_the_lines_leaves_them_their_room():
    mean = np.array([0.5, 0.6])
    chart = html.unescape(str(lines("A", ("P", "a"), [Line("F", 0, 0, mean, [mean - 3, mean + 3])])))
    low, high = map(float, re.search(r'"y": \[([-0-9.e]+), ([0-9.e]+)', chart).groups())
    assert 0.44 < low < 0.5 and 0.6 < high < 0.66


def test_a_round_that_takes_far_longer_than_all_others_is_cut_off_and_named():
    seconds = np.full((40, 1), 0.02)
    seconds[0] = 5.0
    chart = str(stack("Time", "seconds", ["train"], seconds))
    assert '<p class="note">Cut off: round 1 (5).</p>' in chart
    ticks = [float(tick) for tick in re.findall(r'class="tick end"[^>]*>([0-9.]+)<', chart)]
    assert max(ticks) == 0.02


def test_units_that_people_say():
    seconds = [human(value, SECONDS) for value in (0.0352, 9.5, 90, 5400, 200_000)]
    assert seconds == ["35.2 ms", "9.50 s", "1.50 min", "1.50 h", "2.31 d"]
    sizes = [human(value, MEGABYTES) for value in (0.0, 0.012, 999.9, 1234)]
    assert sizes == ["0", "12.0 kB", "1,000 MB", "1.23 GB"]


def test_points_on_the_front_are_joined_and_points_below_others_are_larger():
    points = [
        Point("A", 0, 10.0, 70.0, (69.0, 71.0), True),
        Point("B", 1, 10.0, 70.0, (69.0, 71.0), True),
        Point("C", 2, 3000.0, 80.0, (80.0, 80.0), True),
        Point("D", 3, 4000.0, 75.0, (75.0, 75.0), False),
    ]
    chart = str(scatter("Score against traffic", ("sent", "accuracy %"), MEGABYTES, points))
    assert chart.count("on-front") == 3 and chart.count('class="front"') == 1
    assert "<title>C: 80, 3.00 GB, on the front</title>" in chart and ">sent (GB)</text>" in chart
    assert re.findall(r'r="([0-9.]+)"', chart) == ["6.5", "4.0", "4.0", "4.0"]


def test_of_many_points_those_on_the_front_are_named_by_what_differs():
    names = ["FedAvg", *(f"FedAvg, ring {number}" for number in range(9))]
    points = [
        Point(name, 0, 10.0 + place, 60.0, (59.0, 61.0), front=name.endswith("3"))
        for place, name in enumerate(names)
    ]
    chart = str(scatter("Score against traffic", ("sent", "accuracy %"), MEGABYTES, points))
    assert re.findall(r'class="small"[^>]*>([^<]*)<', chart) == ["ring 3"]
    assert "<title>FedAvg, ring 4: 60, 15.0 MB</title>" in chart


def test_algorithms_that_share_a_page_have_colours_of_their_own():
    looks = algorithm_looks(["scaffold", "fedavg", "ditto", "centralised"], 5)
    assert looks["fedavg"] == 0 and len({look % 8 for look in looks.values()}) == 4
    everyone = algorithm_looks([*ORDER, "median", "krum", "ditto", "my-own", "your-own"], 5)
    assert len({(look % 8, look % 5) for look in everyone.values()}) == len(ORDER) + 5
