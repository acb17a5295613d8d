"""The plans of a round, by hand."""

import numpy as np
import pytest

from fedmpi.comm import reductions
from fedmpi.config.suite import CaseSettings
from fedmpi.errors import RankFailed
from fedmpi.exchange.planning import REQUESTS
from fedmpi.registry.check import build
from tests.algorithms.programs import hooks_of, moves_of, round_of

NONE = reductions.ZERO_EXPONENT
DELTAS = [[1.0], None, [3.0]]


def named(name, exponents, **settings):
    """Return the plan of an algorithm for three clients of groups 0, 0 and 2, of which the second sat out."""
    algorithm = build("demo", CaseSettings("demo", {"algorithm": name})).algorithm
    return round_of(algorithm, DELTAS, group=[0, 0, 2], exponent=exponents, **settings).plan


def test_a_group_has_the_largest_exponent_of_its_participants():
    plan = named("fedavg", [-3, 5, 2])  # client 1 does not take part, and nobody is in group 1
    assert plan.exponent.tolist() == [-3, NONE, 2] and plan.group.tolist() == [0, 0, 2]
    assert (plan.failed_client, plan.lost_client, plan.stop, plan.checkpoint) == (-1, -1, False, False)


def test_a_client_that_is_not_finite_is_named_and_nothing_is_averaged():
    plan = named("fedavg", [np.nan, 5, 2], finite=[0, 0, 1])
    assert plan.failed_client == 0 and plan.exponent.tolist() == [NONE, NONE, NONE]


@pytest.mark.parametrize(
    ("stops", "due", "expected"), [((0, 0), True, (False, True)), ((0, 1), False, (True, True))]
)
def test_one_rank_that_is_asked_to_stop_stops_all_with_a_checkpoint(stops, due, expected):
    plan = named("fedavg", [1, 1, 1], headers=[[stop, 0.0] for stop in stops], checkpoint=due)
    assert (plan.stop, plan.checkpoint) == expected


def deciding(decide, deltas=DELTAS, *, decides=(), asks=("means", "rows"), **settings):
    """Run a server's program of clients of groups 0, 0 and 2."""
    declared = {"decides": frozenset(decides), "asks": frozenset(asks), "__module__": __name__}
    hooks = hooks_of(3, decide=decide, **declared)
    return round_of(hooks, deltas, **{"group": [0, 0, 2], **settings})


def asking(*requests):
    """Return a program that asks for these, given the server, and the answers that it gets."""
    got = []

    def decide(self, server):
        for request in requests:
            got.append((yield request(server)))

    return decide, got


def test_each_request_has_a_plan_and_the_last_plan_has_none():
    decide, got = asking(lambda server: server.means([2, 0]), lambda server: server.rows([2]))
    found = deciding(decide)
    asked = [(REQUESTS[each.request], each.marks.tolist()) for each in found.asked]
    assert asked == [("weighted means", [1, 0, 1]), ("rows", [0, 0, 1])]
    assert (found.plan.request, found.plan.marks.tolist()) == (0, [0, 0, 0])
    assert {group: mean.tolist() for group, mean in got[0].items()} == {0: [1.0], 2: [3.0]}
    assert got[1].tolist() == [[3.0]]


def test_a_request_has_the_exponents_of_its_groups_and_all_the_flags_of_the_round():
    (asked,) = deciding(asking(lambda server: server.means([0]))[0], headers=[[1.0, 0.0]]).asked
    assert asked.exponent.tolist() == [1, NONE, 2]
    assert (asked.stop, asked.checkpoint) == (True, True)


def test_requests_for_nothing_cost_no_plan():
    decide, got = asking(
        lambda server: server.means([]),
        lambda server: server.rows([]),
        lambda server: server.rows([], parameters=True),
    )
    found = deciding(decide, [[1.0, 9.0], None, [3.0, 9.0]], trained=1)
    assert found.asked == []
    assert (got[0], got[1].shape, got[2].shape) == ({}, (0, 2), (0, 1))


def test_nothing_is_asked_for_in_a_round_that_diverged():
    found = deciding(asking(lambda server: server.means([0]))[0], finite=[1, 0, 0])
    assert (found.asked, found.plan.failed_client) == ([], 2)


def test_means_after_a_split_are_of_the_parts():
    got = []

    def decide(self, server):
        server.split([np.array([2, 1]), np.array([0])])
        got.append((yield server.means(np.unique(server.group))))

    found = deciding(decide, [[1.0], [3.0], [5.0]], decides={"splits"}, group=[0, 0, 0])
    assert found.groups == [1, 0, 0]
    assert {group: mean.tolist() for group, mean in got[0].items()} == {0: [4.0], 1: [1.0]}


@pytest.mark.parametrize("weighted", [False, True])
def test_an_algorithm_that_weighs_by_reports_may_ask_for_means(weighted):
    """Its updates have bounds of their own: their weights are not known before."""
    got = []

    def decide(self, server):
        got.append((yield server.means([0], weighted=weighted)))
        server.weigh(server.participants, np.ones(3), 3.0)

    deltas, samples = [[1.0], [2.0], [3.0]], [10, 20, 10]
    deciding(decide, deltas, decides={"weights"}, group=[0, 0, 0], samples=samples)
    assert got[0][0].tolist() == [2.0]


def test_mixed_models_travel_after_the_program_and_are_mixed_by_its_rows():
    def decide(self, server):
        server.mix(np.array([[3.0, 1.0], [0.0, 2.0]]))

    found = deciding(decide, decides={"mixes"}, asks=(), group=[0, 1, 2])
    (asked,) = found.asked
    assert (REQUESTS[asked.request], asked.marks.tolist()) == ("rows", [1, 0, 1])
    assert moves_of(found.decided) == {0: ([1.5], 2), 2: ([3.0], 2)}
    assert found.plan.marks.tolist() == [1, 0, 1]


def test_groups_may_be_moved_or_weighed_and_the_plan_says_which():
    def decide(self, server):
        first, second = server.groups()
        server.move(first, np.array([7.0]))
        server.weigh(second, np.ones(1), 1.0)

    found = deciding(decide, decides={"moves", "weights"})
    assert found.plan.marks.tolist() == [1, 0, 0]
    assert found.plan.weights[2] > 0 == found.plan.weights[0]


def test_a_program_that_changes_its_reports_changes_no_record():
    def decide(self, server):
        server.reports["delta_norm"][:] = server.samples[:] = server.participants[:] = 0

    again = deciding(decide, delta_norm=np.array([1.0, np.nan, 3.0])).decided.again()
    assert again.reports["delta_norm"][2] == 3.0
    assert (again.samples.tolist(), again.participants.tolist()) == ([1, 1, 1], [0, 2])


@pytest.mark.parametrize("given", [None, 5, "rows", np.arange(3)])
def test_a_yield_of_something_else_than_a_request_is_named(given):
    with pytest.raises(RankFailed, match=r"^algorithm odd: hook decide in "):
        deciding(asking(lambda server: given)[0])
