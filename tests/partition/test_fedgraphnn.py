"""FedGraphNN's partition: the published sample counts, and what its text says instead."""

import numpy as np
import pytest

from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.raw import RawGraphs
from fedmpi.partition.options import FedGraphNN
from fedmpi.partition.partition import make, pooled
from fedmpi.registry.check import check_suite
from tests.refusals import refused


@pytest.fixture
def sizes(labelled):
    """Return a function that deals `graphs` graphs out and returns [train, val, test] sizes by client."""

    def dealt(graphs, **options):
        clients = make(FedGraphNN(**options), [labelled([graphs])]).clients
        return [[len(part) for part in (c.train, c.val, c.test)] for c in clients]

    return dealt


@pytest.mark.parametrize(
    ("name", "graphs", "alpha", "train"),
    [
        ("SIDER", 1427, 0.2, [5, 25, 50, 1061]),
        ("BACE", 1513, 0.5, [793, 20, 195, 202]),
        ("ClinTox", 1478, 0.5, [192, 13, 246, 731]),
        ("Tox21", 7831, 3.0, [1356, 340, 549, 1013, 1236, 522, 1115, 133]),
        ("ESOL", 1128, 2.0, [231, 132, 231, 308]),
        ("FreeSolv", 642, 0.5, [127, 161, 88, 137]),
        ("Lipophilicity", 4200, 2.0, [577, 328, 312, 362, 477, 465, 174, 665]),
        ("hERG", 10572, 3.0, [1277, 902, 530, 1156, 2727, 782, 530, 553]),
        ("QM9", 133885, 3.0, [13406, 14278, 20944, 13206, 7116, 10793, 10778, 16587]),
        ("BBBP, had it 2053 molecules", 2053, 2.0, [514, 498, 277, 353]),
    ],
)
def test_seed_0_gives_the_published_pictures(sizes, name, graphs, alpha, train):
    assert [row[0] for row in sizes(graphs, alpha=alpha, clients=len(train))] == train


def test_validation_and_test_graphs_are_dealt_out_too(sizes):
    found = sizes(1427, alpha=0.2)
    assert [row[1] for row in found] == [43, 38, 0, 61]
    assert [row[2] for row in found] == [0, 0, 143, 1]


def test_uniform_shares_differ_by_one(sizes):
    assert [row[0] for row in sizes(1427, allocation="uniform")] == [286, 285, 285, 285]


def test_by_label_each_class_has_shares_of_its_own(labelled):
    raw = labelled([500, 500])
    clients = make(FedGraphNN(allocation="label", alpha=0.5), [raw]).clients
    shares = np.array([np.bincount(raw.labels[c.train], minlength=2) for c in clients]) / 400
    assert np.abs(shares[:, 0] - shares[:, 1]).max() > 0.2


def test_stratified_is_81_9_10(labelled):
    clients = make(FedGraphNN(split="stratified", allocation="uniform"), [labelled([100, 100])]).clients
    assert [sum(len(getattr(c, part)) for c in clients) for part in ("train", "val", "test")] == [162, 18, 20]
    test = np.concatenate([client.test for client in clients])
    assert (test < 100).sum() == 10


def test_scaffolds_do_not_cross_the_split(labelled):
    scaffolds = np.repeat(np.arange(30), np.arange(30, 0, -1))
    raw = RawGraphs(**{**vars(labelled([len(scaffolds)])), "scaffolds": scaffolds})
    clients = make(FedGraphNN(split="scaffold", allocation="uniform"), [raw]).clients
    held = [[getattr(c, part) for c in clients] for part in ("train", "val", "test")]
    parts = [set(scaffolds[np.concatenate(each)]) for each in held]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    assert max(parts[2]) == 29  # the rarest scaffolds are tested on


@pytest.mark.parametrize(
    ("options", "counts", "message"),
    [
        ({"alpha": 0.01}, [60], r"client-0\d gets no training graph at alpha 0.01"),
        ({"split": "stratified"}, [50, 50, 1], r"needs more graphs of each class than \w+ has"),
        ({"split": "scaffold"}, [50], "needs molecules read from SMILES"),
    ],
)
def test_what_a_dataset_cannot_have_is_refused(labelled, options, counts, message):
    with refused(match=message):
        make(FedGraphNN(**options), [labelled(counts)])


def test_a_central_client_holds_the_same_parts(labelled):
    partition = make(FedGraphNN(alpha=2.0), [labelled([100])])
    (centre,) = pooled(partition).clients
    for part in ("train", "val", "test"):
        together = np.concatenate([getattr(client, part) for client in partition.clients])
        assert getattr(centre, part).tolist() == together.tolist()


@pytest.mark.parametrize(("dataset", "graphs"), [("SIDER", 1427), ("ClinTox", 1480), ("FreeSolv", 642)])
def test_every_client_of_the_sweep_over_their_number_trains(labelled, dataset, graphs):
    suite = read(locations.find("fedgraphnn/sweep-clients"), [f"data={dataset}", "model=gcn"])
    sizes = {}
    for item in check_suite(suite):
        clients = make(item.case.partition, [labelled([graphs])]).clients
        sizes[len(clients)] = min(len(client.train) for client in clients)
    assert sorted(sizes) == [4, 5, 6, 7, 8, 9, 10]
    assert min(sizes.values()) >= 1
