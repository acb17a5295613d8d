"""Convolutions that are never trained: computed once per round and graph, with the results of every step anew."""

import numpy as np
import pytest

from fedmpi.client.view_batches import counts_of
from fedmpi.models.options import MvgrlEncoderOptions
from fedmpi.objectives.options import MvgrlOptions
from tests.making import assert_close
from tests.objectives.made import STREAMS, dense_products, passes_of, viewed

MODEL = MvgrlEncoderOptions(hidden=16, layers=3, register_layers=False)
BATCHES = (np.array([3, 1, 17, 4, 30, 39]), None, np.array([2, 3]))


@pytest.fixture(scope="module")
def graphs():
    return viewed(40)


def passes(graphs, *, fixed):
    train = graphs.take(np.arange(40))  # other than all graphs, as of a client that holds some out
    return passes_of(MvgrlOptions(), MODEL, graphs, "fixed" if fixed else "csr", train)


def two_rounds(graphs, *, fixed):
    """Return losses, gradients and counted work of all steps, and the vectors after each round."""
    ours = passes(graphs, fixed=fixed)
    model, steps, vectors = ours.model, [], []
    for _ in range(2):
        ours.begin_round(None)
        for chosen in BATCHES:
            done = ours.step(ours.batch(chosen), STREAMS)
            steps.append((done, model.gradient.clone()))
            model.parameters[: model.trained] -= 0.01 * model.gradient[: model.trained]
        ours.end_epoch()
        ours.end_round()
        vectors.append(ours.evaluate())
    return steps, vectors


def test_steps_and_vectors_are_those_of_convolutions_done_anew(graphs):
    kept, anew = (two_rounds(graphs, fixed=fixed) for fixed in (True, False))
    for (step, gradient), (expected, gradient_) in zip(kept[0], anew[0], strict=True):
        assert step.outcome.mean_loss == pytest.approx(expected.outcome.mean_loss, rel=1e-5)
        assert_close(gradient, gradient_)
        assert step.model_flops == expected.model_flops
    for found, expected in zip(kept[1], anew[1], strict=True):
        assert_close(found.vectors, expected.vectors)
        assert found.model_flops == expected.model_flops


def test_convolutions_are_counted_where_they_are_done(graphs):
    """Of nodes once a round, of graphs in evaluation once a run."""
    steps, vectors = two_rounds(graphs, fixed=True)
    ours = passes(graphs, fixed=True)
    flops, (first, other) = ours.flops, counts_of(ours.batch(None).views)
    convolved = flops.convolutions(first, other, executed=True).total
    heads = [flops.heads_and_bounds(counts_of(ours.batch(each).views)[0].counts).total for each in BATCHES]
    once = [heads[0] + convolved, *heads[1:]]
    assert [step.executed_flops for step, _ in steps] == [*once, *once]
    evaluated = flops.graph_heads(first.counts).total
    assert [each.executed_flops for each in vectors] == [evaluated + convolved, evaluated]


def test_heads_do_the_dense_products_that_are_counted(graphs):
    ours = passes(graphs, fixed=True)
    ours.begin_round(None)
    batch = ours.batch(None)
    with dense_products() as counter:
        ours.step(batch, STREAMS)
    assert counter.get_total_flops() == ours.flops.heads_and_bounds(counts_of(batch.views)[0].counts).dense
    ours.evaluate()
    with dense_products() as counter:
        found = ours.evaluate()
    assert counter.get_total_flops() == found.executed_flops
