"""What is made of runs on several numbers of ranks."""

import numpy as np
import pytest

from fedmpi.benchmarks.whole_runs import Run, summed_up


def run(median, overhead_share, seconds):
    return Run({"round_seconds": median, "overhead_share": overhead_share}, np.full(10, seconds))


def test_gains_are_those_of_neighbours_and_of_the_fastest_tenth():
    one = [run(4.0, 0.1, 4.0), run(2.0, 0.1, 2.0)]
    two = [run(2.0, 0.15, 2.0), run(2.0, 0.15, 1.25)]
    report = summed_up({2: one, 3: two}, {})
    alone, beside = (each.figures for each in report.measurements)
    assert alone["gain"].values == (1.0, 1.0)
    assert beside["gain"].values == (2.0, 1.0)
    assert beside["overhead_share"].values == (0.15, 0.15)
    assert report.results["gain"] == {"2": 1.0, "3": 1.5}
    assert report.results["gain_of_fastest"]["3"] == pytest.approx(2.0 / 1.25)
    assert report.statements == [
        "3 ranks do 1.50 times the rounds of 2 (1.00 to 2.00 in 2 turns; 1.60 by the fastest tenth of all rounds)"
    ]
