"""Median, trimmed mean and Krum on updates whose results are computed by hand."""

import time

import numpy as np
import pytest

from fedmpi.algorithms.krum import scores
from fedmpi.algorithms.median import Median
from fedmpi.exchange.planning import REQUESTS
from fedmpi.runs.signals import StopRequest
from fedmpi.store.schema import PHASES
from tests.algorithms.programs import moves_of, named, round_of
from tests.refusals import refused


def rows(*values):
    return np.array(values, np.float32)


def aggregate(algorithm, table, trained=None):
    """Return what the model of all clients moves by; samples differ, and all count alike."""
    found = round_of(algorithm, table, samples=range(1, len(table) + 1), trained=trained)
    (step, count), *_ = found.decided.moves.values()
    assert (step.dtype, count) == (np.float64, len(table))
    return step.tolist()


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        ([[1, 900], [3, 2], [2, -1]], [2.0, 2.0]),  # the one in the middle of each coordinate
        ([[1, 0], [4, 0], [2, 8], [1000, 4]], [3.0, 2.0]),  # between the two in the middle
        ([[1.5, -2]], [1.5, -2.0]),
        ([[1 + 2**-23], [1]], [1 + 2**-24]),  # exact: in single precision these have no number between them
    ],
)
def test_the_median_of_each_coordinate(updates, expected):
    assert aggregate(named("median"), rows(*updates)) == expected


def test_each_group_moves_by_the_aggregate_of_its_participants():
    deltas = [[1], [10], None, [3], [30]]
    found = round_of(named("median"), deltas, group=[0, 2, 0, 0, 2])
    assert moves_of(found.decided) == {0: ([2.0], 2), 2: ([20.0], 2)}
    assert found.plan.marks.tolist() == [1, 0, 1, 0, 0]


def test_updates_of_all_participants_travel_once():
    (asked,) = round_of(named("median"), [[1], None, [3]]).asked
    assert (REQUESTS[asked.request], asked.marks.tolist()) == ("rows", [1, 0, 1])


FOUR = rows([0], [1], [2], [9])


@pytest.mark.parametrize(
    ("beta", "table", "expected"),
    [
        (0.2, rows([1, 0], [2, 0], [3, 3], [6, 6], [-500, 500]), [2.0, 3.0]),  # the largest and the smallest
        (0.24, FOUR, [3.0]),  # 0.96 clients: rounded down to none
        (0.25, FOUR, [1.5]),
        (0.49, FOUR, [1.5]),
    ],
)
def test_a_trimmed_mean_leaves_out_a_share_at_each_end(beta, table, expected):
    assert aggregate(named("trimmed-mean", beta=beta), table) == expected


def test_a_share_that_is_a_whole_number_of_clients_is_not_rounded_below_it():
    table = np.zeros((100, 1), np.float32)
    table[:29], table[71:] = -1e6, 1e6  # 0.29 * 100 is 28.999999999999996 in floats
    table[0] = -2e6
    assert aggregate(named("trimmed-mean", beta=0.29), table) == [0.0]


FIVE = rows([0, 0], [1, 0], [0, 2], [-1, 0], [100, 100])
"""Squared distances: 0-1 1, 0-2 4, 0-3 1, 1-2 5, 1-3 4, 2-3 5; to the last, 19,000 or more."""


def test_scores_are_sums_of_squared_distances_to_the_nearest():
    # Five rows, f = 1: the two nearest. 0: 1 + 1; 1: 1 + 4; 2: 4 + 5; 3: 1 + 4.
    assert scores(FIVE, 1)[:4].tolist() == [2.0, 5.0, 9.0, 5.0]
    assert scores(FIVE, 1)[4] == (99**2 + 100**2) + (100**2 + 98**2)
    assert scores(FIVE, 0)[:4].tolist() == [6.0, 10.0, 14.0, 10.0]


@pytest.mark.parametrize(
    ("m", "expected"),
    [(1, [0.0, 0.0]), (4, [0.0, 0.5]), (2, [0.5, 0.0])],  # rows 1 and 3 share the score 5: the lower client
)
def test_krum_averages_the_m_updates_with_the_least_scores(m, expected):
    assert aggregate(named("krum", f=1, m=m), FIVE) == expected


def test_running_statistics_count_in_no_distance_and_follow_the_choice():
    statistics = rows([7], [0], [0], [0], [0])
    assert aggregate(named("krum", f=1), np.hstack([FIVE, statistics]), trained=2) == [0.0, 0.0, 7.0]


@pytest.mark.parametrize(
    ("options", "clients", "share", "words"),
    [
        ({"f": 1}, 4, 1.0, "f = 1 and m = 1 need 5 clients in a round or more .* there are 4"),
        ({"f": 1}, 5, 0.6, "need 5 clients in a round or more .* there are 3"),
        ({"f": 0, "m": 6}, 5, 1.0, "f = 0 and m = 6 need 6 clients"),
    ],
)
def test_too_few_clients_for_f_or_m_are_refused(options, clients, share, words):
    named("krum", f=1).participants(0, 0, 5, 1.0)
    with refused(match=words):
        named("krum", **options).participants(0, 0, clients, share)


def test_a_trimmed_mean_that_leaves_out_nobody_says_so():
    algorithm = named("trimmed-mean")
    assert algorithm.remark(9, False) == "beta = 0.1 of 9 participants leaves out nobody: this is the mean"
    assert algorithm.remark(10, False) == ""


def test_the_time_of_an_aggregate_is_the_servers(prepared, monkeypatch):
    usual = Median.aggregate

    def slow(self, rows, trained):
        time.sleep(0.2)
        return usual(self, rows, trained)

    monkeypatch.setattr(Median, "aggregate", slow)
    _, report = prepared("algorithm=median").run(0, stop=StopRequest(), checkpoint=False)
    seconds = dict(zip(PHASES, report.measurements["phase_seconds"][0], strict=True))
    assert seconds["server"] > 0.2 > seconds["communicate"]
