"""Weights from reports: what enters the exact sum, and what comes out of it, by hand."""

import numpy as np
import pytest

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.case.reductions import ExactOptions
from fedmpi.comm import reductions
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Plain
from fedmpi.exchange.buffers import Buffers
from fedmpi.exchange.group_models import Exchange, RoundPlan
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from tests.algorithms.programs import round_of

SAMPLES = np.array([10, 20, 30])


class ByLoss(Algorithm):
    """Weights are the losses, the divisor is the number of training graphs."""

    decides = frozenset({"weights"})

    def decide(self, server):
        for members in server.groups():
            losses = server.reports["train_loss"][members]
            server.weigh(members, losses, float(server.samples[members].sum()))


def hooks():
    by_loss = ByLoss(AlgorithmOptions(name="by-loss"))
    by_loss.name = "by-loss"  # of the object alone: the registry knows classes that have a name
    return Hooks(by_loss, 3, Position())


def plan_of(group, losses, deltas, participants=(0, 1, 2), failed=-1):
    """Return the plan of a round in which clients have these losses and updates."""
    rows = [row if client in participants else None for client, row in enumerate(deltas)]
    finite = [float(client != failed) for client in range(3)]
    return round_of(hooks(), rows, group=group, samples=SAMPLES, train_loss=losses, finite=finite).plan


def models(plan, deltas, participants=(0, 1, 2), trained=2):
    collectives, hosts = World().collectives, np.zeros(3, np.int64)
    start = {int(group): np.zeros(2, np.float32) for group in plan.group}
    plain = Plain(collectives, hosts, ExactOptions(), 2, Buffers())
    exchange = Exchange(collectives, hosts, plain, hooks(), 2, trained, Buffers())
    exchange.models = start
    rows = {client: np.array(deltas[client], np.float32) for client in participants}
    exchange.run(plan, np.array(participants), plan.weights, rows, {})
    return {group: model.tolist() for group, model in exchange.models.items()}


def test_each_group_has_its_own_divisor():
    deltas = [[4.0, 0.0], [0.0, 6.0], [8.0, 8.0]]
    plan = plan_of([0, 0, 1], [0.5, 0.25, 3.0], deltas)
    assert plan.weights.tolist() == [0.5, 0.25, 0.75]  # at a power of two of their own by group
    # (0.5 * 4, 0.25 * 6) / (10 + 20) and 3 * 8 / 30
    assert models(plan, deltas) == {0: pytest.approx([2 / 30, 1.5 / 30]), 1: pytest.approx([0.8, 0.8])}


def test_running_statistics_move_by_the_weighted_mean():
    deltas = [[4.0, 4.0], [8.0, 8.0], [0.0, 0.0]]
    plan = plan_of([0, 0, 0], [1.0, 3.0, 0.0], deltas)
    # 28 / 60 of the parameter, (1 * 4 + 3 * 8) / 4 of the statistic
    assert models(plan, deltas, trained=1) == {0: pytest.approx([28 / 60, 7.0])}


def test_tiny_and_large_weights_lose_nothing_of_the_sum():
    deltas = [[2.0**100, 1.0], [-(2.0**100), 2.0**-20], [0.0, 0.0]]
    plan = plan_of([0, 0, 0], [1e-30, 1e-30, 1e-90], deltas)
    assert models(plan, deltas)[0][0] == 0.0


def test_updates_of_zero_leave_the_model_where_it_is():
    deltas = [[0.0, 0.0]] * 3
    plan = plan_of([0, 0, 0], [1.0, 2.0, 3.0], deltas)
    assert plan.exponent.tolist() == [reductions.ZERO_EXPONENT] * 3
    assert models(plan, deltas) == {0: [0.0, 0.0]}


def test_nobody_is_weighed_in_a_round_that_diverged():
    plan = plan_of([0, 0, 0], [1.0, np.nan, 1.0], [[1.0, 1.0]] * 3, failed=1)
    assert (plan.failed_client, plan.weights.tolist()) == (1, [0.0, 0.0, 0.0])


def test_weights_and_divisors_survive_their_message():
    plan = plan_of([0, 0, 2], [0.1, 0.2, 0.3], [[1.0, 1.0]] * 3)
    again = RoundPlan.unpack(plan.pack(), 3)
    assert again.weights.tolist() == plan.weights.tolist()
    assert again.divisor.tolist() == plan.divisor.tolist()
    assert again.group.tolist() == [0, 0, 2]


def test_a_weight_keeps_29_bits_so_that_products_are_exact():
    weights, divisor = checks.round_weights(np.array([1 / 3, 1.0]), 2.0, 2)
    third = round(2**30 / 3) / 2**30  # the first bit of 1/3 is 2^-2
    assert weights.tolist() == [third / 2, 0.5]
    assert divisor == 1.0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((np.ones(3), 1.0), r"float64 \[3\]: they must be float64 \[2\]"),
        ((np.array([1.0, -1.0]), 1.0), "none below 0"),
        ((np.array([1.0, np.nan]), 1.0), "they are finite"),
        ((np.zeros(2), 1.0), "not all 0"),
        ((np.ones(2), 0.0), "the divisor 0.0: it is above 0"),
        ((np.ones(2), np.inf), "the divisor inf"),
        ((np.ones(2), None), "the divisor None: it must be a number"),
    ],
)
def test_what_are_no_weights_is_named(value, words):
    with pytest.raises(Breach, match=words):
        checks.round_weights(*value, 2)
