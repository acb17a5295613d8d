"""Link prediction: filtered ranks counted one by one, corrupted triples, and what travels."""

import numpy as np
import pytest
import torch

from fedmpi.datasets.networks import with_relations
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, SparseRows
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flops import RgcnFlops
from fedmpi.models.networks import build
from fedmpi.models.options import RgcnOptions, Shape
from fedmpi.models.outcome import Evaluation, Outcome
from fedmpi.tasks.link_prediction import LinkPrediction
from tests.making import client, labelled
from tests.tasks.making import make_case

NODES, RELATIONS = 12, 3
RNG = np.random.default_rng(3)
TRAINED = RNG.integers((NODES, RELATIONS, NODES), size=(40, 3))
HELD = RNG.integers((NODES, RELATIONS, NODES), size=(7, 3))


def rows_of_identity():
    return SparseRows(np.arange(NODES + 1), np.arange(NODES), np.ones(NODES, np.float32), NODES)


def batch_of(triples):
    """Return a batch whose edges are the training triples and whose examples are these."""
    graph_ptr = np.array([0, NODES])
    topology, relation = with_relations(TRAINED[:, 0], TRAINED[:, 2], TRAINED[:, 1], graph_ptr)
    return Batch.of(
        GraphSet(
            topology, rows_of_identity(), np.arange(NODES), triples[:, 1],
            relation.astype(np.uint8)[:, None], places=triples[:, [0, 2]],
        )
    )  # fmt: skip


@pytest.fixture
def module():
    torch.manual_seed(1)
    return build(RgcnOptions(hidden=16, blocks=2, layers=1), Shape(NODES, RELATIONS))


@pytest.fixture
def task():
    """Two clients of two held-out triples each; the second validates none."""
    places, labels = HELD[:6, [0, 2]], HELD[:6, 1]
    topology, _ = with_relations(places[:, 0], places[:, 1], labels, np.array([0, NODES]))
    raw = labelled(topology, labels, "abc", places=places)
    splits = [client([0, 1], [2], [3], range(NODES)), client([4], [], [5], range(NODES))]
    return LinkPrediction(make_case(), [raw], splits)


def test_ranks_are_those_counted_one_by_one(task, module):
    batch = batch_of(HELD)
    with torch.no_grad():
        found, flops = task.judge(module, batch, "csr")
        states, relations = module.states(batch, None), module.readout.weight

    def score(head, relation, tail):
        return float((states[head] * relations[relation] * states[tail]).sum())

    known = {tuple(triple) for triple in np.concatenate([TRAINED, HELD]).tolist()}
    for (head, relation, tail), ranks in zip(HELD.tolist(), found.scores.tolist(), strict=True):
        true = score(head, relation, tail)
        tails = [each for each in range(NODES) if (head, relation, each) not in known]
        heads = [each for each in range(NODES) if (each, relation, tail) not in known]
        assert ranks[0] == 1 + sum(score(head, relation, each) > true for each in tails)
        assert ranks[1] == 1 + sum(score(each, relation, tail) > true for each in heads)
        assert len(tails) < NODES
    assert flops == 2 * 2 * len(HELD) * NODES * 16


def test_equal_scores_are_half_better_and_nan_is_the_worst(task, module):
    batch = batch_of(HELD[:1])
    with torch.no_grad():
        module.readout.weight.zero_()
        tied = task.judge(module, batch, "csr")[0].scores
        module.readout.weight.fill_(float("nan"))
        worst = task.judge(module, batch, "csr")[0].scores
    known = {tuple(triple) for triple in np.concatenate([TRAINED, HELD[:1]]).tolist()}
    head, relation, tail = HELD[0].tolist()
    others = [
        sum((head, relation, each) not in known for each in range(NODES)),
        sum((each, relation, tail) not in known for each in range(NODES)),
    ]
    assert tied[0].tolist() == [1 + 0.5 * count for count in others]
    assert worst[0].tolist() == [1 + count for count in others]


def test_each_triple_has_a_corrupted_partner_that_is_drawn_anew(task):
    batch = batch_of(TRAINED)
    first, again, other = (task.step_batch(batch, DropoutStreams(0, 0, 0, step)) for step in (1, 1, 2))
    assert torch.equal(first.places, again.places)
    assert not torch.equal(first.places, other.places)
    count = len(TRAINED)
    assert torch.equal(first.places[:count], batch.places)
    assert torch.equal(first.labels[count:], -1 - batch.labels)
    changed = first.places[count:] != batch.places
    assert int(changed.sum(dim=1).max()) == 1
    assert changed[:, 0].any() and changed[:, 1].any()
    assert first.topology is batch.topology


def test_the_loss_is_the_binary_cross_entropy_of_both(task, module):
    batch = task.step_batch(batch_of(TRAINED), DropoutStreams(0, 0, 0, 0))
    outputs = task.outputs(module, batch, None, "csr")
    relation = torch.where(batch.labels < 0, -1 - batch.labels, batch.labels)
    all_scores = module(batch, None).gather(1, relation[:, None])
    assert torch.allclose(outputs, all_scores, rtol=1e-5, atol=1e-6)
    right = torch.sigmoid(torch.where(batch.labels < 0, -outputs[:, 0], outputs[:, 0]))
    assert task.loss(outputs, batch.labels).item() == pytest.approx(-right.log().mean().item(), rel=1e-5)


def evaluation(val, test):
    parts = (np.array(ranks, np.float32).reshape(-1, 2) for ranks in (val, test))
    sizes = [(len(part), part) for part in parts]
    made = [Outcome(np.zeros(n), np.zeros(n, np.uint8), np.ones(n, np.int64), part) for n, part in sizes]
    return Evaluation(*made, 0, 0)


def test_metrics_are_over_all_clients_tails_and_heads(task):
    assert task.lengths.tolist() == [16, 8]
    one, two = evaluation([[1, 4]], [[2, 1]]), evaluation([], [[12, 3]])
    rows = task.rows(np.concatenate([task.pack(0, one), task.pack(1, two)]))
    assert float(rows["test_mrr"]) == pytest.approx((1 / 2 + 1 + 1 / 12 + 1 / 3) / 4)
    assert [float(rows[f"test_hits_{most}"]) for most in (1, 3, 10)] == [0.25, 0.75, 0.75]
    assert float(rows["val_mrr"]) == pytest.approx((1 + 1 / 4) / 2)


def test_clients_that_were_not_evaluated_do_not_count(task):
    rows = task.rows(np.concatenate([task.pack(0, None), task.pack(1, evaluation([], [[1, 1]]))]))
    assert float(rows["test_mrr"]) == 1
    assert np.isnan(rows["val_mrr"])


@pytest.mark.parametrize(("layers", "epoch"), [(2, 326.6), (0, 0)])
def test_an_epoch_of_rgcn_on_fb15k_237_costs_326_gflop_in_messages(layers, epoch):
    """500 wide with 5 blocks: 2 x 272,115 messages, two layers, forward and twice backward."""
    from fedmpi.models.counts import GraphCounts

    flops = RgcnFlops(RgcnOptions(hidden=500, blocks=5, layers=layers), Shape(14_505, 237))
    counts = GraphCounts(1, 0, 272_115, 0, 0, 1)
    assert flops.training(counts).dense / 1e9 == pytest.approx(epoch, rel=1e-3)
