"""Means on one rank: what is asked for, from which elements, in which phase."""

import time

import numpy as np

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import RowAggregate
from fedmpi.case.reductions import ExactOptions
from fedmpi.comm import reductions
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Groups, Plain, RowMeans, Rows
from fedmpi.exchange.buffers import Buffers
from fedmpi.exchange.meter import Meter
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.store.schema import PHASES

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
    assert plain.upload_bytes == 8


class Heaviest(RowAggregate, Algorithm):
    """Takes the row with the largest weight, and its time."""

    name = "heaviest"

    def aggregate(self, rows, weights):
        time.sleep(0.05)
        return rows[np.argmax(weights)].astype(np.float64)


def test_rows_of_each_group_come_in_client_order_with_their_weights():
    collectives, where = World().collectives, Position()
    meter = Meter(collectives, where)
    heaviest = Hooks(Heaviest(AlgorithmOptions(name="heaviest")), 4, where)
    means = RowMeans(Rows(collectives, HOSTS, 3), heaviest.rows, 3, meter)
    with meter.phase("communicate"):
        found = means.means(groups(0, 1), np.arange(4), WEIGHTS, DELTAS)
    assert as_lists(found) == {0: [1.0, 0.0, 9.0], 1: [8.0, 0.0, 9.0]}
    phases = dict(zip(PHASES, meter.table(meter.snapshot()[None])["phase_seconds"][0], strict=True))
    assert phases["server"] > 0.1  # both groups, and none of it in the phase around it
    assert 0 <= phases["communicate"] < 0.05
