"""Weights from reports: what enters the exact sum, and what comes out of it, by hand."""

import numpy as np
import pytest

from fedmpi.comm import reductions
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach
from tests.algorithms.programs import hooks_of, round_of
from tests.exchange.exchanged import exchanged

SAMPLES = np.array([10, 20, 30])


def by_loss(self, server):
    """Weigh by losses; the divisor is the number of training graphs."""
    for members in server.groups():
        losses = server.reports["train_loss"][members]
        server.weigh(members, losses, float(server.samples[members].sum()))


def hooks():
    return hooks_of(3, decide=by_loss, decides=frozenset({"weights"}))


def plan_of(group, losses, deltas, failed=-1):
    """Return the plan of a round in which clients have these losses and updates."""
    finite = [float(client != failed) for client in range(3)]
    return round_of(hooks(), deltas, group=group, samples=SAMPLES, train_loss=losses, finite=finite).plan


def models(plan, deltas, trained=2):
    start = {int(group): [0.0, 0.0] for group in plan.group}
    rows = {client: np.array(delta, np.float32) for client, delta in enumerate(deltas)}
    return exchanged(hooks(), plan, range(3), plan.weights, rows, start, trained=trained)


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
