"""Counts of unsupervised objectives: dense products as torch counts them, copies apart."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedmpi.client.unsupervised import UnsupervisedPasses
from fedmpi.client.view_batches import TorchBatches, counts_of
from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.graphs.diffusion import DiffusionOptions, diffuse
from fedmpi.graphs.views import ViewedGraphs
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.flops import GraphCounts
from fedmpi.models.options import GinEncoderOptions, MvgrlEncoderOptions, Shape
from fedmpi.objectives import unsupervised
from fedmpi.objectives.flops import ObjectiveFlops, ViewCounts
from fedmpi.objectives.options import (
    FclgNodesOptions,
    FclgOptions,
    InfoGraphOptions,
    IntraKlOptions,
    IntraOptions,
    MvgrlOptions,
)

GIN = GinEncoderOptions(hidden=16, layers=3)
CASES = [
    (InfoGraphOptions(), GIN),
    (IntraOptions(), GIN),
    (FclgOptions(), GIN),
    (MvgrlOptions(), MvgrlEncoderOptions(hidden=16, layers=3)),
    (MvgrlOptions(), MvgrlEncoderOptions(hidden=16, layers=3, register_layers=False)),
]


@pytest.fixture(scope="module")
def graphs():
    raw = generate(SyntheticOptions(graphs=20), 1)
    return ViewedGraphs(
        build_features(raw, np.arange(20), "original"), diffuse(raw.topology, DiffusionOptions())
    )


def passes(objective, model, graphs):
    shape = Shape(graphs.graphs.feature_rows.shape[1], 2)
    flat = FlatModel(unsupervised.network_of(objective, model, shape))
    flat.parameters.copy_(flat.initialise(1, 0))
    flops = ObjectiveFlops(objective, model, shape)
    made = objective.make()
    batches = TorchBatches(graphs, graphs, made, flops)
    return UnsupervisedPasses(batches, flat, made, flops, by_epoch=not objective.keeps_last_round)


def counts(step):
    return counts_of(step.views)


def dense_product(a, b, **_):
    """What torch counts, but nothing for a sparse matrix, which it takes for a full one."""
    return 0 if a.layout == torch.sparse_csr else 2 * a.shape[0] * a.shape[1] * b.shape[1]


dense_product._get_raw = True


@pytest.mark.parametrize(("objective", "model"), CASES, ids=lambda each: each.name)
def test_dense_products_of_a_step_are_those_that_torch_counts(objective, model, graphs):
    ours = passes(objective, model, graphs)
    ours.begin_round(None)
    step = ours.batch(None)
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.mm: dense_product}) as counter:
        ours.step(step, DropoutStreams(1, 0, 0, 0))
    assert ours._flops.step(*counts(step), executed=False).dense == counter.get_total_flops()


def test_copies_cost_one_forward_each_from_the_second_epoch_on(graphs):
    def after(objective, epochs):
        ours = passes(objective, GIN, graphs)
        ours.begin_round(None)
        found = []
        for _ in range(epochs):
            found.append(ours.step(ours.batch(None), DropoutStreams(1, 0, 0, 0)).model_flops)
            ours.end_epoch()
        return found

    alone = after(IntraOptions(), 1)[0]
    ours = passes(IntraOptions(), GIN, graphs)
    forward = ours._flops.encoding(counts(ours.batch(None))[0], executed=False).total
    assert after(FclgOptions(), 3) == [alone, alone + 2 * forward, alone + 2 * forward]
    assert after(FclgNodesOptions(), 2) == [alone, alone + 2 * forward]
    assert after(IntraKlOptions(), 2) == [alone + forward, alone + forward]


def test_edges_of_a_weighted_view_cost_a_product_and_an_addition():
    plain, weighted = (ViewCounts(GraphCounts(2, 10, 30), each) for each in (False, True))
    assert [view.sums(4, executed=False) for view in (plain, weighted)] == [120, 240]
    assert [view.sums(4, executed=True) for view in (plain, weighted)] == [320, 320]


@pytest.mark.parametrize("epochs", [1, 2, 3])
@pytest.mark.parametrize(
    "objective",
    [IntraOptions(), FclgOptions(), FclgNodesOptions(previous="round"), IntraKlOptions()],
    ids=lambda each: each.name,
)
def test_frozen_copies_encode_as_often_as_counted(objective, epochs, graphs):
    ours = passes(objective, GIN, graphs)
    ours.begin_round(ours._model.parameters.clone() if objective.keeps_last_round else None)
    executed = steps = 0
    for _ in range(epochs):
        batch = ours.batch(None)
        executed += ours.step(batch, DropoutStreams(1, 0, 0, 0)).executed_flops
        steps += ours._batches.step_flops(batch.views)
        ours.end_epoch()
    view = counts(ours.batch(None))[0]
    flops = ObjectiveFlops(objective, GIN, Shape(graphs.graphs.feature_rows.shape[1], 2))
    assert executed - steps == flops.copies(epochs) * flops.encoding(view, executed=True).total
