"""Means and rows on one rank: of whom, and of which elements."""

import numpy as np

from fedmpi.case.reductions import ExactOptions
from fedmpi.comm import reductions
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Groups, Plain, gather_rows
from fedmpi.exchange.buffers import Buffers

GROUP, HOSTS = np.array([0, 1, 0, 1]), np.zeros(4, np.int64)
DELTAS = {n: np.array(row, np.float32) for n, row in enumerate([[1, 0, 9], [2, 2, 9], [5, 4, 9], [8, 0, 9]])}
WEIGHTS = np.array([3, 1, 1, 7])


def groups(*wanted):
    exponent = np.full(4, reductions.ZERO_EXPONENT)
    for client, delta in DELTAS.items():
        mine = reductions.weighted_exponent(delta, int(WEIGHTS[client]))
        exponent[GROUP[client]] = max(exponent[GROUP[client]], mine)
    return Groups(GROUP, exponent, dict.fromkeys(wanted, 0))


def as_lists(means):
    return {group: mean.tolist() for group, mean in means.items()}


def test_means_are_those_of_the_groups_asked_for_and_of_their_first_elements():
    plain = Plain(World().collectives, HOSTS, ExactOptions(), 2, Buffers())
    participants = np.array([0, 1, 2])
    assert as_lists(plain.means(groups(0), participants, WEIGHTS, DELTAS)) == {0: [2.0, 1.0]}
    assert as_lists(plain.means(groups(0, 1), participants, WEIGHTS, DELTAS)) == {
        0: [2.0, 1.0],
        1: [2.0, 2.0],
    }


def test_rows_come_by_client_with_as_many_elements_as_travel():
    found = gather_rows(World().collectives, HOSTS, np.array([1, 3]), DELTAS, 2)
    assert as_lists(found) == {1: [2.0, 2.0], 3: [8.0, 0.0]}
