"""Compiled passes on binary labels with gaps and on numbers equal torch's, dropout on; a call is its steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedmpi.case.optimizers import AdamOptions, AdamWOptions, SgdOptions
from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.optimizer import AdamState, descend, descent
from fedmpi.client.targets import TARGETS
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import MODELS, FedStarOptions, Shape
from tests.making import assert_close, flat, generated, with_labels
from tests.tasks.making import make_task

TASKS, COLUMNS = ("multi-task", "regression"), 5
EVERY = [*(MODELS[name](hidden=20) for name in ("gin", "fedstar", "gcn", "gat", "sage", "sgc", "mpnn"))]
EVERY += [MODELS["gin"](hidden=32, norm=norm) for norm in ("layer", "batch+graph")]


def graph_set(task, options, count=30):
    """Return graphs with labels, and with the structure encodings that the model reads."""
    graphs = with_labels(generated(0, count), task, COLUMNS)
    if isinstance(options, FedStarOptions):
        structure = structure_encoding(graphs.topology, options.walks, options.degrees)
        graphs = replace(graphs, structure=structure)
    return graphs


def both(options, task, kernels="csr", held_out=range(20, 30)):
    """Return the passes of compiled kernels and of torch's on the same data, each with its model."""
    graphs = graph_set(task, options)
    width = graphs.feature_rows.shape[1]
    predicted = make_task(task, graphs.labels, targets="standardised" if task == "regression" else "raw")
    flops, models = options.flops(Shape(width, COLUMNS)), [flat(options, width, COLUMNS) for _ in range(2)]
    parts = graphs.take(np.arange(20)), graphs.take(np.array(held_out, np.int64))
    fast = fast_network(options, models[0], Scratch(), TARGETS[task])
    compiled = CompiledPasses(*parts, fast, flops, predicted)
    return (compiled, models[0]), (TorchPasses(*parts, models[1], kernels, flops, predicted), models[1])


def assert_same(found, expected, tolerance=1e-5):
    assert_close(found.outcome.losses, expected.outcome.losses, tolerance)
    assert_close(found.outcome.scores, expected.outcome.scores, tolerance)
    assert found.outcome.weights.tolist() == expected.outcome.weights.tolist()
    assert found.outcome.mean_loss == pytest.approx(expected.outcome.mean_loss, rel=tolerance)
    assert found.model_flops == expected.model_flops


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("options", EVERY)
def test_a_step_and_an_evaluation_equal_torchs(options, task):
    (fast, model), (plain, reference) = both(options, task)
    for numbers in (None, np.array([7, 2, 9, 9, 0]), np.array([3])):
        found, expected = (
            passes.step(passes.batch(numbers), DropoutStreams(1, 2, 3, 0)) for passes in (fast, plain)
        )
        assert_same(found, expected)
        assert_close(model.gradient, reference.gradient)
    assert_same(fast.evaluate(), plain.evaluate())
    assert_same(fast.evaluate_training(), plain.evaluate_training())


@pytest.mark.parametrize("task", TASKS)
def test_a_step_of_gin_equals_torch_geometrics(task):
    (fast, model), (plain, reference) = both(MODELS["gin"](hidden=32), task, "reference")
    found, expected = (
        passes.step(passes.batch(None), DropoutStreams(1, 2, 3, 0)) for passes in (fast, plain)
    )
    assert_same(found, expected)
    assert_close(model.gradient, reference.gradient)


@pytest.mark.parametrize("task", TASKS)
def test_losses_of_many_steps_follow_torchs(task):
    """30 steps of Adam: rounding grows, and the curves stay together."""
    curves = []
    for passes, model in both(MODELS["gin"](hidden=32), task):
        state, losses = AdamState(model.trained), []
        for step in range(30):
            numbers = np.arange(20)[step % 2 :: 2]
            losses.append(passes.step(passes.batch(numbers), DropoutStreams(1, 2, 3, step)).outcome.mean_loss)
            descend(
                AdamOptions(lr=1e-3),
                state,
                model.parameters[: model.trained],
                model.gradient[: model.trained],
            )
        curves.append([*losses, passes.evaluate().outcome.mean_loss])
    assert curves[1][0] != pytest.approx(curves[1][-2], rel=0.05)
    assert curves[0] == pytest.approx(curves[1], rel=1e-3)


OPTIMIZERS = [
    AdamOptions(lr=1e-2, weight_decay=1e-3),
    AdamWOptions(lr=1e-2, clip=0.1),
    SgdOptions(lr=1e-4, weight_decay=1e-3),
    SgdOptions(lr=1e-3, momentum=0.9, clip=0.1),
]


def changed(passes, model, state):
    return [
        *(each.clone() for each in (model.parameters, model.gradient, state.mean, state.square)),
        state.steps,
    ]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: f"{each.name}-{each.clip}")
@pytest.mark.parametrize("hidden", [20, 32])
@pytest.mark.parametrize("task", ["classification", *TASKS])
def test_many_steps_in_one_call_have_the_bits_of_single_ones(task, hidden, optimizer):
    """So an algorithm that changes gradients on the way, which takes single steps, does nothing else."""
    streams = [DropoutStreams(1, 2, 3, step) for step in range(3)]
    for chosen in ([np.arange(20)[part::3] for part in range(3)], [None]):
        found = []
        for at_once in (True, False):
            (passes, model), _ = both(MODELS["gin"](hidden=hidden), task)
            state = AdamState(model.trained)
            batches = [passes.batch(numbers) for numbers in chosen]
            if at_once:
                outcomes = passes.descend(batches, streams[: len(batches)], optimizer, state)
            else:
                outcomes = []
                take = descent(optimizer, state, model.parameters, model.gradient)
                for batch, stream in zip(batches, streams, strict=False):
                    outcomes.append(passes.step(batch, stream))
                    take()
            found.append((outcomes, changed(passes, model, state)))
        (first, ours), (second, theirs) = found
        assert ours[0].isfinite().all()
        assert all(map(torch.equal, ours[:-1], theirs[:-1]))
        assert ours[-1] == theirs[-1]
        for one, other in zip(first, second, strict=True):
            assert one.outcome.losses.tobytes() == other.outcome.losses.tobytes()
            assert one.outcome.hits.tobytes() == other.outcome.hits.tobytes()
            assert (one.model_flops, one.executed_flops) == (other.model_flops, other.executed_flops)
            assert one.outcome.weight == other.outcome.weight
            if task != "classification":
                assert one.outcome.scores.tobytes() == other.outcome.scores.tobytes()


@pytest.mark.parametrize("task", TASKS)
def test_a_client_without_held_out_graphs_is_evaluated(task):
    found, expected = (passes.evaluate().outcome for passes, _ in both(MODELS["gin"](), task, held_out=()))
    assert found.losses.shape == (0,)
    assert found.weight == expected.weight == 0
    assert found.scores.shape == expected.scores.shape == (0, COLUMNS)


def test_labels_of_a_client_are_those_of_its_data():
    """Kernels train on standardised numbers; programs read the labels as they are."""
    graphs, ((fast, _), _) = graph_set("regression", MODELS["gin"]()), both(MODELS["gin"](), "regression")
    assert np.array_equal(fast.train.labels, graphs.labels[:20], equal_nan=True)
