"""The server's plan of a round, by hand."""

import numpy as np
import pytest

from fedmpi.client.message_layout import MessageLayout
from fedmpi.client.training import columns_of
from fedmpi.comm import reductions
from fedmpi.config.suite import CaseSettings
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.messages import Gathered
from fedmpi.exchange.planning import Planner
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.registry.check import build

NONE = reductions.ZERO_EXPONENT
SAMPLES = np.array([10, 20, 30])


def plan_of(algorithm, exponents, *, norms=(1.0, 1.0, 1.0), finite=(1, 1, 1), round=0, stops=(0,), due=False):
    """Return the plan after three clients, all of group 0 but the last of group 2, sent these columns."""
    checked = build("demo", CaseSettings("demo", {"algorithm": algorithm}))
    hooks = Hooks(checked.algorithm, 3, Position())
    names = columns_of(hooks)
    table = np.ones((3, len(names)))
    columns = {"exponent": exponents, "finite": finite, "delta_norm": norms, "gradient_norm": norms}
    for name, values in columns.items():
        table[:, names.index(name)] = values
    gathered = Gathered(np.array([[stop, 0.0] for stop in stops]), table, np.zeros(0, np.uint8), names)
    layouts = MessageLayout({}), MessageLayout({})
    planner, group = Planner(checked.case, hooks, layouts, SAMPLES, SAMPLES), np.array([0, 0, 2])
    plan = planner.plan(round, group, gathered, np.array([0, 2]), lost=-1, checkpoint=due)
    assert len(plan.pack()) == planner.size
    return plan


def test_a_group_has_the_largest_exponent_of_its_participants():
    plan = plan_of("fedavg", [-3, 5, 2])  # client 1 does not take part, and nobody is in group 1
    assert plan.exponent.tolist() == [-3, NONE, 2] and plan.group.tolist() == [0, 0, 2]
    assert (plan.failed_client, plan.lost_client, plan.stop, plan.checkpoint) == (-1, -1, False, False)


def test_a_client_that_is_not_finite_is_named_and_nothing_is_averaged():
    plan = plan_of("fedavg", [np.nan, 5, 2], finite=[0, 0, 1])
    assert plan.failed_client == 0 and plan.exponent.tolist() == [NONE, NONE, NONE]


@pytest.mark.parametrize(
    ("stops", "due", "expected"), [((0, 0), True, (False, True)), ((0, 1), False, (True, True))]
)
def test_one_rank_that_is_asked_to_stop_stops_all_with_a_checkpoint(stops, due, expected):
    plan = plan_of("fedavg", [1, 1, 1], stops=stops, due=due)
    assert (plan.stop, plan.checkpoint) == expected


def test_only_groups_past_the_warm_up_with_a_long_update_may_split():
    long, short = {"norms": (9.0, 9.0, 9.0)}, {"norms": (1e-3, 1e-3, 1e-3)}
    gcfl = {"name": "gcfl", "warmup": 20, "smallest": 1, "eps2": 0.5}
    assert not plan_of(gcfl, [1, 1, 1], round=19, **long).split_candidates.any()
    assert not plan_of(gcfl, [1, 1, 1], round=20, **short).split_candidates.any()
    assert plan_of(gcfl, [1, 1, 1], round=20, **long).split_candidates.tolist() == [1, 0, 0]


def test_weights_from_reports_make_the_plan_longer():
    plan = plan_of("fednova", [1, 1, 1])
    unpacked = RoundPlan.unpack(plan.pack(), 3)
    assert plan.weights is not None and unpacked.divisor.tolist() == plan.divisor.tolist()
