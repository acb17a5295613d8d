"""Counts of unsupervised objectives: dense products as torch counts them, copies apart."""

import pytest

from fedmpi.client.view_batches import counts_of
from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import GinEncoderOptions, MvgrlEncoderOptions
from fedmpi.objectives import options as objectives
from fedmpi.objectives.flops import ViewCounts
from tests.objectives.made import STREAMS, dense_products, passes_of, viewed

GIN = GinEncoderOptions(hidden=16, layers=3)
CASES = [
    (objectives.InfoGraphOptions(), GIN),
    (objectives.IntraOptions(), GIN),
    (objectives.FclgOptions(), GIN),
    (objectives.MvgrlOptions(), MvgrlEncoderOptions(hidden=16, layers=3)),
    (objectives.MvgrlOptions(), MvgrlEncoderOptions(hidden=16, layers=3, register_layers=False)),
]


@pytest.fixture(scope="module")
def graphs():
    return viewed(20)


def counts(step):
    return counts_of(step.views)


@pytest.mark.parametrize(("objective", "model"), CASES, ids=lambda each: each.name)
def test_dense_products_of_a_step_are_those_that_torch_counts(objective, model, graphs):
    ours = passes_of(objective, model, graphs)
    ours.begin_round(None)
    step = ours.batch(None)
    with dense_products() as counter:
        ours.step(step, STREAMS)
    assert ours.flops.step(*counts(step), executed=False).dense == counter.get_total_flops()


def test_copies_cost_one_forward_each_from_the_second_epoch_on(graphs):
    def after(objective, epochs):
        ours = passes_of(objective, GIN, graphs)
        ours.begin_round(None)
        found = []
        for _ in range(epochs):
            found.append(ours.step(ours.batch(None), STREAMS).model_flops)
            ours.end_epoch()
        return found

    alone = after(objectives.IntraOptions(), 1)[0]
    ours = passes_of(objectives.IntraOptions(), GIN, graphs)
    forward = ours.flops.encoding(counts(ours.batch(None))[0], executed=False).total
    assert after(objectives.FclgOptions(), 3) == [alone, alone + 2 * forward, alone + 2 * forward]
    assert after(objectives.FclgNodesOptions(), 2) == [alone, alone + 2 * forward]
    assert after(objectives.IntraKlOptions(), 2) == [alone + forward, alone + forward]


def test_edges_of_a_weighted_view_cost_a_product_and_an_addition():
    plain, weighted = (ViewCounts(GraphCounts(2, 10, 30), each) for each in (False, True))
    assert [view.sums(4, executed=False) for view in (plain, weighted)] == [120, 240]
    assert [view.sums(4, executed=True) for view in (plain, weighted)] == [320, 320]


@pytest.mark.parametrize("epochs", [1, 2, 3])
@pytest.mark.parametrize(
    "objective",
    [
        objectives.IntraOptions(),
        objectives.FclgOptions(),
        objectives.FclgNodesOptions(previous="round"),
        objectives.IntraKlOptions(),
    ],
    ids=lambda each: each.name,
)
def test_frozen_copies_encode_as_often_as_counted(objective, epochs, graphs):
    ours = passes_of(objective, GIN, graphs)
    ours.begin_round(ours.model.parameters.clone() if objective.keeps_last_round else None)
    executed = steps = 0
    for _ in range(epochs):
        batch = ours.batch(None)
        executed += ours.step(batch, STREAMS).executed_flops
        steps += ours.batches.step_flops(batch.views)
        ours.end_epoch()
    view = counts(ours.batch(None))[0]
    assert executed - steps == ours.flops.copies(epochs) * ours.flops.encoding(view, executed=True).total
