"""The compiled molecule models equal torch's, dropout on, within 1e-5; an epoch is its steps."""

import numpy as np
import pytest
import torch

from fedmpi.case.optimizers import AdamOptions, AdamWOptions, SgdOptions
from fedmpi.client.compiled_passes import MoleculePasses
from fedmpi.client.optimizer import AdamState, descend
from fedmpi.client.targets import TARGETS
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.graphs.packed import GraphSet, Topology, pointers
from fedmpi.kernels.molecules.fast import FastMolecules
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import MODELS, Shape
from tests.making import assert_close, flat
from tests.tasks.making import make_task

KINDS = {name: MODELS[f"fedgraphnn/{name}"] for name in ("gcn", "sage", "gat")}
TASK_NAMES = ("multi-task", "regression", "classification")
STREAMS = DropoutStreams(seed=1, client=2, round=3, step=0)


def graph_set(labels, width=8):
    """Return random trees with a few more edges, the first a single node, one per row of labels."""
    rng = np.random.default_rng(7)
    sizes = np.concatenate([[1], rng.integers(2, 40, len(labels) - 1)])
    starts, lists = pointers(sizes), []
    for start, size in zip(starts, sizes, strict=False):
        near = [set() for _ in range(size)]
        pairs = [(node, int(rng.integers(node))) for node in range(1, size)]
        pairs += [tuple(rng.choice(size, 2, replace=False)) for _ in range(size // 8)]
        for a, b in pairs:
            near[a].add(b)
            near[b].add(a)
        lists += [int(start) + np.array(sorted(nodes), np.int64) for nodes in near]
    topology = Topology(starts, pointers([len(line) for line in lists]), np.concatenate(lists))
    rows = rng.normal(size=(topology.num_nodes, width)).astype(np.float32)
    return GraphSet(topology, rows, np.arange(len(rows)), labels)


def labels_for(task, graphs, width=5):
    rng = np.random.default_rng(3)
    if task == "classification":
        return rng.integers(0, width, graphs)
    values = rng.normal(2.0, 3.0, (graphs, width))
    if task == "multi-task":
        values = (values > 2).astype(float)
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 0] = np.nan_to_num(values[:, 0])
    return values


def both(kind, task="multi-task", graphs=12, held_out=range(3, 9), **settings):
    """Return the passes of both kernels on the same data, each with its model."""
    labels = labels_for(task, graphs)
    options, shape = KINDS[kind](**settings), Shape(8, 5)
    predicted = make_task(task, labels, targets="standardised" if task == "regression" else "raw")
    everything, flops = graph_set(labels), options.flops(shape)
    kept_back = everything.take(np.array(held_out, np.int64))
    models = [flat(options, 8, 5, start=(5, 1)) for _ in range(2)]
    fast = FastMolecules(options, models[0], TARGETS[task])
    compiled = MoleculePasses(everything, kept_back, fast, flops, predicted)
    plain = TorchPasses(everything, kept_back, models[1], "csr", flops, predicted)
    return (compiled, models[0]), (plain, models[1])


def assert_same_outcome(found, expected):
    assert_close(found.losses, expected.losses)
    assert np.array_equal(found.hits, expected.hits)
    assert found.weight == expected.weight
    if expected.scores is not None:
        assert_close(found.scores, expected.scores)


def check_step(kind, numbers, **settings):
    (fast, model), (plain, reference) = both(kind, **settings)
    found, expected = (passes.step(passes.batch(numbers), STREAMS) for passes in (fast, plain))
    assert_same_outcome(found.outcome, expected.outcome)
    assert found.model_flops == expected.model_flops
    for slot in reference.slots:
        part = slice(slot.start, slot.stop)
        assert_close(model.gradient[part], reference.gradient[part])


@pytest.mark.parametrize("dropout", [0.0, 0.25, 0.3, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_equals_torchs(kind, dropout):
    check_step(kind, np.array([7, 2, 0, 9, 9]), dropout=dropout)
    check_step(kind, np.array([4]), dropout=dropout)
    check_step(kind, np.array([0]), dropout=dropout)
    check_step(kind, None, dropout=dropout)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_training_graphs_are_evaluated_as_held_out_ones(task):
    for passes, _ in both("gcn", task, held_out=range(12)):
        found, expected = passes.evaluate_training(), passes.evaluate()
        assert np.array_equal(found.outcome.losses, expected.outcome.losses)
        assert (found.outcome.weight, found.model_flops) == (expected.outcome.weight, expected.model_flops)


@pytest.mark.parametrize("task", TASK_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_any_task(kind, task):
    check_step(kind, np.array([7, 2, 0, 9]), task=task)


@pytest.mark.parametrize(
    "widths",
    [
        {"hidden": 20, "node": 6, "readout": 9, "graph": 33},
        {"hidden": 1, "node": 1, "readout": 1, "graph": 1},
        {"hidden": 128, "node": 256, "readout": 16, "graph": 80},
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_any_width(kind, widths):
    check_step(kind, np.array([7, 2, 0, 9]), **widths)


@pytest.mark.parametrize("task", TASK_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_and_embedding_equal_torchs(kind, task):
    (fast, _), (plain, _) = both(kind, task=task, graph=20)
    found, expected = fast.evaluate(), plain.evaluate()
    assert_same_outcome(found.outcome, expected.outcome)
    assert found.model_flops == expected.model_flops
    assert_close(fast.embed().rows, plain.embed().rows)


@pytest.mark.parametrize(
    "optimizer",
    [
        AdamOptions(lr=1e-4),
        AdamOptions(lr=1e-4, weight_decay=0.0, state="reset"),
        AdamWOptions(lr=1e-4),
        SgdOptions(lr=1e-2, weight_decay=1e-3),
        SgdOptions(lr=1e-2, momentum=0.9),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_has_the_bits_of_its_single_steps(kind, optimizer):
    """So an algorithm that changes gradients on the way, which takes single steps, does nothing else."""
    (fast, model), _ = both(kind, hidden=20)
    (other, stepped), _ = both(kind, hidden=20)
    states = [AdamState(model.trained) for _ in range(2)]
    batches = [np.array([number]) for number in (3, 1, 4, 0, 5)] + [np.array([2, 6])]
    streams = [DropoutStreams(1, 2, 3, number) for number in range(len(batches))]
    fast.descend(batches, streams, optimizer, states[0])
    for batch, stream in zip(batches, streams, strict=True):
        other.step(batch, stream)
        descend(optimizer, states[1], stepped.parameters, stepped.gradient)
    assert states[0].steps == (0 if isinstance(optimizer, SgdOptions) else len(batches))
    assert torch.equal(model.parameters, stepped.parameters)
    assert torch.equal(states[0].square, states[1].square)


@pytest.mark.parametrize("kind", KINDS)
def test_what_other_clients_left_behind_does_not_show(kind):
    """Scratch grows with the largest molecule seen, and is used by all."""
    (fast, model), _ = both(kind)
    first = fast.step(np.array([3, 4]), STREAMS).outcome.losses
    gradient = model.gradient.clone()
    fast.step(np.arange(12), STREAMS)
    fast.evaluate()
    assert np.array_equal(fast.step(np.array([3, 4]), STREAMS).outcome.losses, first)
    assert torch.equal(model.gradient, gradient)


@pytest.mark.parametrize("task", TASK_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_without_held_out_graphs_is_evaluated(kind, task):
    """FedGraphNN's partition may leave a client without validation and test graphs."""
    (fast, _), (plain, _) = both(kind, task=task, held_out=())
    found, expected = fast.evaluate(), plain.evaluate()
    assert found.outcome.losses.shape == (0,)
    assert found.outcome.weight == expected.outcome.weight == 0
    assert np.shape(found.outcome.scores) == np.shape(expected.outcome.scores)


def test_executed_flops_of_gcn():
    """Its products once, those of the gradients but for the features', and a product and a sum per entry."""
    (fast, _), _ = both("gcn")
    found = fast.step(np.array([4]), STREAMS)
    nodes, entries = 36, 114
    dense = 2 * nodes * (8 * 64 + 64 * 64 + 72 * 64 + 64 * 64) + 2 * 64 * 16
    gradients = 2 * dense - 2 * nodes * (8 * 64 + 8 * 64)
    assert found.executed_flops == dense + gradients + 2 * 2 * entries * 64 + nodes * 64


def test_executed_flops_of_torch_leave_out_what_a_batch_keeps():
    """Graph 4 has 114 entries with 8 features: GCN's first sums, which its batch keeps after a step."""
    _, (plain, _) = both("gcn")
    batch = plain.batch(np.array([4]))
    first, second = (plain.step(batch, STREAMS) for _ in range(2))
    assert first.executed_flops == first.model_flops
    assert second.model_flops == first.model_flops
    assert first.executed_flops - second.executed_flops == 114 * 8


@pytest.mark.parametrize("kind", ("sage", "gat"))
def test_models_without_propagated_features_do_every_step_anew(kind):
    _, (plain, _) = both(kind)
    batch = plain.batch(np.array([4]))
    first, second = (plain.step(batch, STREAMS) for _ in range(2))
    assert first.executed_flops == second.executed_flops == first.model_flops
