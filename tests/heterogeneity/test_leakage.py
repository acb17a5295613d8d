"""Twins of test graphs in training sets."""

from dataclasses import dataclass

import numpy as np
import pytest

from fedmpi.heterogeneity.leakage import leakage, signatures
from fedmpi.partition.options import Chunks
from fedmpi.partition.partition import make

PATH = (3, [(0, 1), (1, 2)])
SAME_PATH = (3, [(0, 2), (2, 1)])
TRIANGLE = (3, [(0, 1), (1, 2), (0, 2)])
STAR = (4, [(0, 1), (0, 2), (0, 3)])
HEXAGON = (6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])
TWO_TRIANGLES = (6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])


@dataclass(frozen=True)
class Holder:
    name: str
    dataset: int
    train: np.ndarray
    test: np.ndarray

    def examples(self, raw, part):
        return getattr(self, part)


def holder(name, dataset, train, test):
    return Holder(name, dataset, np.array(train), np.array(test))


def test_isomorphic_graphs_are_equal_and_others_are_not(packed, labelled):
    marks = signatures(labelled(packed(PATH, SAME_PATH, TRIANGLE, STAR)))
    assert marks[0] == marks[1]
    assert len(set(marks.tolist())) == 3


def test_labels_count(packed, labelled):
    marks = signatures(labelled(packed(PATH, SAME_PATH, PATH), [1, 0, 0, 0, 1, 0, 0, 1, 0]))
    assert marks[0] == marks[1] != marks[2]  # the path 1-0-0 twice, and 0-1-0


def test_what_refinement_cannot_tell_apart_counts_as_a_twin(packed, labelled):
    marks = signatures(labelled(packed(HEXAGON, TWO_TRIANGLES)))
    assert marks[0] == marks[1]


def test_refinement_sees_three_steps_far(packed, labelled):
    path = (9, [(node, node + 1) for node in range(8)])
    ends = [[label, 0, 0, 0, 0, 0, 0, 0, other] for label, other in ((1, 1), (1, 0))]
    marks = signatures(labelled(packed(path, path), [*ends[0], *ends[1]]))
    assert marks[0] != marks[1]
    far = (18, [(node, node + 1) for node in range(17) if node != 8])
    paths = [[1, *[0] * 7, 1, *[0] * 9], [1, *[0] * 8, 1, *[0] * 8]]  # ends 11 + 00, and 10 + 10
    first, second = signatures(labelled(packed(far, far), [*paths[0], *paths[1]]))
    assert first == second


def test_twins_are_counted_in_the_own_and_in_others_training_sets(packed, labelled):
    raw = labelled(packed(PATH, SAME_PATH, TRIANGLE, STAR, TRIANGLE, HEXAGON, STAR))
    found = leakage([holder("a", 0, [0, 2], [1, 3, 4]), holder("b", 0, [3, 4], [5, 6])], [raw])
    first, second = found.clients
    assert (first.own.tolist(), first.other.tolist()) == ([True, False, True], [False, True, True])
    assert (second.own.tolist(), second.other.tolist()) == ([False, True], [False, False])
    assert (first.clean.sum(), second.clean.tolist()) == (0, [True, False])
    assert (found.datasets[0].distinct, found.datasets[0].graphs) == (4, 7)


def test_datasets_are_compared_where_neither_has_labels(packed, labelled):
    bare = labelled(packed(PATH, PATH))
    marked = labelled(packed(PATH, PATH), [0] * 6)
    clients = [holder("a", 0, [0], [1]), holder("b", 1, [0], [1])]
    assert leakage(clients, [bare, bare]).clients[0].other.tolist() == [True]
    for raws in ([bare, marked], [marked, marked]):
        assert leakage(clients, raws).clients[0].other.tolist() == [False]


@pytest.mark.parametrize(("name", "distinct"), [("IMDB-BINARY", 537), ("NCI1", 4039), ("AIDS", 1902)])
def test_distinct_graphs(real, name, distinct):
    assert len(np.unique(signatures(real(name)))) == distinct


def test_a_twin_may_have_another_class(real):
    dataset = real("IMDB-BINARY")
    marks = signatures(dataset)
    classes = [set(dataset.labels[marks == mark].tolist()) for mark in marks]
    assert sum(len(held) == 2 for held in classes) == 318


def test_imdb_binary_leaks_where_proteins_hardly_does(real):
    shares = {}
    for name in ("IMDB-BINARY", "PROTEINS"):
        raws = [real(name)]
        clients = leakage(make(Chunks(clients=10), raws).clients, raws).clients
        shares[name] = sum((~client.clean).sum() for client in clients) / sum(len(c.own) for c in clients)
    assert shares["IMDB-BINARY"] > 0.4
    assert shares["PROTEINS"] < 0.1
