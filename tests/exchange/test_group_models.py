"""The server's averages on one rank, with numbers computed by hand."""

import numpy as np
import pytest

from fedmpi.case.reductions import REDUCTIONS
from fedmpi.comm import reductions
from fedmpi.comm.collectives import NAMES
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Buffers, Plain
from fedmpi.exchange.group_models import Exchange, RoundPlan
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from tests.algorithms.programs import named
from tests.exchange.exchanged import exchanged


def hooks_of(algorithm, clients):
    return Hooks(named(algorithm), clients, Position())


def average(group, participants, weights, deltas, models, reduction="exact", algorithm="fedavg", moves=()):
    """Return the models after a round in which rank 0 moves those of the groups of `moves` itself."""
    group, moves = np.array(group), dict(moves)
    exponent = np.full(len(group), reductions.ZERO_EXPONENT)
    for client in participants:
        mine = reductions.weighted_exponent(deltas[client], weights[client])
        exponent[group[client]] = max(exponent[group[client]], mine)
    marks = np.isin(np.arange(len(group)), list(moves)).astype(np.int64)
    plan = RoundPlan(group, exponent, marks, -1, -1, False, False)
    hooks = hooks_of(algorithm, len(group))
    return exchanged(hooks, plan, participants, weights, deltas, models, moves, reduction)


def deltas(*rows):
    return {client: np.array(row, np.float32) for client, row in enumerate(rows) if row is not None}


@pytest.mark.parametrize("reduction", ["exact", "float32", "fixed32"])
def test_fedavg_adds_the_weighted_mean(reduction):
    # (3 * 0.5 + 1 * -0.5) / 4 = 0.25 and (3 * 0 + 1 * 1) / 4 = 0.25
    models = average([0, 0], [0, 1], [3, 1], deltas([0.5, 0.0], [-0.5, 1.0]), {0: [1.0, 1.0]}, reduction)
    assert models == {0: [1.25, 1.25]}


STEP = np.array([0.5, -0.5])


@pytest.mark.parametrize(
    ("group", "participants", "weights", "updates", "before", "more", "after"),
    [
        # groups are averaged apart
        ([0, 1, 0], [0, 1, 2], [1, 5, 1], ([1, 0], [8, 8], [3, 0]), {0: [0, 0], 1: [1, 1]}, {}, {0: [2, 0], 1: [9, 9]}),
        # FedCCH's Eq. 13: (3 * 1 + 1 * 5) / 4 = 2 and (3 * 0 + 1 * 4) / 4 = 1; what clusters had before is gone
        (
            [0, 1, 0], [0, 1, 2], [3, 7, 1], ([1, 0], [8, 8], [5, 4]), {0: [9, 9], 1: [9, 9]},
            {"algorithm": "fedcch"}, {0: [2, 1], 1: [8, 8]},
        ),
        # a client that sat out has no weight
        ([0, 0], [1], [100, 1], (None, [4, 4]), {0: [0, 0]}, {}, {0: [4, 4]}),
        # a group without participants keeps its model
        ([0, 1], [0], [1, 1], ([1, 1], None), {0: [0, 0], 1: [7, 7]}, {}, {0: [1, 1], 1: [7, 7]}),
        # of a group that is moved no update is read, and weights are 0
        (
            [0, 1, 1], [0, 2], [1, 0, 0], ([1, 1], None, [np.nan] * 2), {0: [0, 0], 1: [7, 7]},
            {"moves": {1: (STEP, 2)}}, {0: [1, 1], 1: [7.5, 6.5]},
        ),
        # what moves a group replaces its model where models are averaged
        (
            [0, 0], [0, 1], [1, 1], ([8, 8], [9, 9]), {0: [7, 7]},
            {"algorithm": "fedgta", "moves": {0: (STEP, 2)}}, {0: [0.5, -0.5]},
        ),
    ],
)  # fmt: skip
def test_models_of_groups(group, participants, weights, updates, before, more, after):
    assert average(group, participants, weights, deltas(*updates), before, **more) == after


def test_nothing_is_summed_where_all_groups_are_moved():
    collectives, group = World().collectives, np.zeros(2, np.int64)
    exchange = Exchange(collectives, group, None, hooks_of("median", 2), 2, 2, Buffers())
    exchange.models = {0: np.zeros(2, np.float32)}
    plan = RoundPlan(group, group, np.array([1, 0]), -1, -1, False, False)
    exchange.run(plan, np.arange(2), np.ones(2, np.int64), {}, {0: (np.array([1.0, 2.0]), 2)})
    assert exchange.models[0].tolist() == [1.0, 2.0]
    assert exchange.survivors == {0: 2}


def test_the_parts_of_a_group_begin_with_its_model():
    collectives, hosts = World().collectives, np.zeros(3, np.int64)
    exchange = Exchange(collectives, hosts, None, hooks_of("fedavg", 3), 2, 2, Buffers())
    exchange.models = {0: np.array([1, 2], np.float32)}
    exchange.regroup(np.array([0, 0, 0]), np.array([0, 1, 1]))
    assert exchange.models[1].tolist() == [1.0, 2.0]
    exchange.models[0][0] = 9
    assert exchange.models[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("request_number", [0, 3])
def test_the_plan_survives_its_message(request_number):
    whole = np.array([0, 1]), np.array([-3, reductions.ZERO_EXPONENT]), np.array([1, 0])
    plan = RoundPlan(*whole, 1, 4, True, False, ended=True, request=request_number)
    message = plan.pack()
    again = RoundPlan.unpack(message, 2)
    assert len(message) == RoundPlan.size(2, weighs=False)
    assert (again.group.tolist(), again.exponent.tolist()) == ([0, 1], [-3, reductions.ZERO_EXPONENT])
    assert (again.marks.tolist(), again.request) == ([1, 0], request_number)
    assert (again.failed_client, again.lost_client) == (1, 4)
    assert (again.checkpoint, again.stop, again.ended) == (True, False, True)


@pytest.mark.parametrize(("algorithm", "gathered"), [("fedavg", 1), ("fedcch", 0)])
def test_at_a_resume_rank_0_gets_models_of_groups_and_none_of_groups_that_are_made_anew(algorithm, gathered):
    """What FedCCH has is a client's own where its sum was lost, and a secure sum is to hide it."""
    collectives, hosts, group = World().collectives, np.array([0, 1, 1]), np.zeros(3, np.int64)
    plain = Plain(collectives, hosts, REDUCTIONS["exact"](), 2, Buffers())
    exchange = Exchange(collectives, hosts, plain, hooks_of(algorithm, 3), 2, 2, Buffers())
    before = collectives.calls.copy()
    exchange.restore(group, {0: np.ones(2, np.float32)})
    calls = dict(zip(NAMES, (collectives.calls - before).tolist(), strict=True))
    assert calls == dict.fromkeys(NAMES, 0) | {"Gatherv": gathered}
