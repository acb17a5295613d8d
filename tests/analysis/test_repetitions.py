"""Repetitions that draw their partition anew are averaged; partitions of several seeds each are not."""

import pytest

from fedmpi.analysis.cells import cells
from fedmpi.analysis.page.collect import digest
from fedmpi.analysis.page.settings import remarks, settings
from fedmpi.store.reader import load_run


@pytest.fixture
def make(make_run, tmp_path):
    """Return a function that makes runs of two algorithms with these seeds of run and partition."""

    def runs(*pairs):
        found = []
        for algorithm in ("fedavg", "fedprox"):
            for seed, of_partition in pairs:
                own = {"algorithm": algorithm, "partition": {"name": "iid", "seed": of_partition}}
                folder = tmp_path / f"{algorithm}-{seed}-{of_partition}"
                found.append(load_run(make_run(folder, [[0.5, 0.7]], seed=seed, settings=own)))
        return found

    return runs


def seeds_of(runs, *across):
    """Return the seeds of each cell, as figures and as reports have them."""
    complaints = []
    found = settings([digest(run, None) for run in runs], complaints, across=across)
    assert complaints == []
    return [list(cell.runs) for cell in cells(runs)], [list(each.runs) for one in found for each in one.cells]


def test_each_seed_with_a_partition_of_its_own_is_a_repetition(make):
    assert seeds_of(make((1, 1), (2, 2), (3, 5))) == ([[1, 2, 3]] * 2, [[1, 2, 3]] * 2)


@pytest.mark.parametrize(
    "pairs", [((1, 1), (1, 2), (2, 1), (2, 2)), ((1, 7), (2, 7), (1, 8), (2, 8)), ((1, 123), (2, 123))]
)
def test_seeds_that_share_a_partition_are_averaged_by_it(make, pairs):
    drawn = len({of_partition for _, of_partition in pairs})
    assert seeds_of(make(*pairs)) == ([[1, 2]] * 2 * drawn, [[1, 2]] * 2 * drawn)


def test_two_partitions_of_seeds_of_their_own_are_not_averaged(make):
    figures, reports = seeds_of(make((1, 7), (2, 7), (3, 8), (4, 8)))
    assert figures == [[1, 2], [3, 4]] * 2
    assert sorted(reports) == [[1, 2], [1, 2], [3, 4], [3, 4]]


def test_partitions_that_are_to_be_compared_are_not_averaged(make):
    _, reports = seeds_of(make((1, 1), (2, 2)), "partition.seed")
    assert reports == [[1], [2]] * 2


def test_remarks_are_said_once_with_the_median_of_the_seconds_before_round_1():
    prox = {"algorithm": {"name": "fedprox"}}, {"remarks": ["it is FedAvg"]}
    sage = {"algorithm": {"name": "fedsage-plus"}}
    mended = [(sage, {"preparation_seconds": each}) for each in (2.0, 4.0, 60.0)]
    assert remarks([prox, prox, *mended, ({"algorithm": "fedavg"}, {})]) == [
        "FedProx: it is FedAvg",
        "FedSage+: clients work together before round 1. That took 4 s (median); s/round does not count it",
    ]
