"""Accuracy and F1 of clusters: the four published rows that are one cluster with nearly everything."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from fedmpi.metrics.clustering import agreement, can_probe, one_cluster, probe, score, unit


def singletons(counts, alone):
    """Labels, and clusters: everything in the first but the given graphs, each in one of its own."""
    labels = np.repeat(np.arange(len(counts)), counts)
    clusters = np.zeros(len(labels), np.int64)
    for cluster, graphs in enumerate(alone, start=1):
        clusters[graphs] = cluster
    return labels, clusters


@pytest.mark.parametrize(
    ("counts", "alone", "accuracy", "macro_f1"),
    [
        # Li, Agrawal, Ramnath and Jin 2024, Tables II and III, MVGRL: percent as printed
        ([100] * 6, [[100], [200], [300], [400], [500]], 17.50, 6.45),  # ENZYMES
        ([295, 461], [[0]], 61.11, 38.25),  # DHFR
        ([2053, 2057], [[0]], 50.07, 33.41),  # NCI1
        ([663, 450], [[0, 1]], 59.39, 37.26),  # PROTEINS
    ],
)
def test_the_published_rows_of_one_large_cluster(counts, alone, accuracy, macro_f1):
    found = agreement(*singletons(counts, alone))
    assert (round(100 * found.accuracy, 2), round(100 * found.macro_f1, 2)) == (accuracy, macro_f1)


@pytest.mark.parametrize("counts", [[663, 450], [100] * 6, [7, 0, 3]])
def test_one_cluster_scores_what_its_agreement_is(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    found, wanted = one_cluster(np.array(counts)), agreement(labels, np.zeros_like(labels))
    assert (found.accuracy, found.macro_f1) == pytest.approx((wanted.accuracy, wanted.macro_f1))


def test_macro_f1_is_scikit_learns_after_the_matching():
    labels, clusters = np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([1, 1, 0, 0, 0, 2, 2, 0])
    predicted = np.array([1, 0, 2])[clusters]
    assert agreement(labels, clusters).macro_f1 == pytest.approx(f1_score(labels, predicted, average="macro"))


def test_well_separated_vectors_are_found_whatever_the_seed():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    vectors = (100 * np.eye(3)[labels] + rng.normal(size=(120, 3))).astype(np.float32)
    assert [score(vectors, labels, seed).accuracy for seed in (0, 1)] == [1.0, 1.0]
    assert score(vectors[:, :2], labels, 5) == score(vectors[:, :2], labels, 5)
    assert probe(vectors, labels, 0) == 1.0


def test_unit_vectors_have_norm_1_and_zeros_stay():
    assert np.allclose(unit(np.array([[3, 4], [0, 0]], np.float32)), [[0.6, 0.8], [0, 0]])


@pytest.mark.parametrize("counts, able", [([5, 5], True), ([50, 4], False), ([50], False), ([5, 1, 5], True)])
def test_a_probe_needs_two_classes_with_a_graph_in_every_fold(counts, able):
    assert can_probe(np.repeat(np.arange(len(counts)), counts)) is able
