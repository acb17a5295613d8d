"""Heterogeneity: similarity of linked nodes, Jensen-Shannon measures, pairs."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from fedmpi.heterogeneity import distances
from fedmpi.heterogeneity.pairs import Pairs
from fedmpi.heterogeneity.walks import embed

PATH = (3, [(0, 1), (1, 2)])


def test_divergence_by_hand():
    disjoint, same = ([1.0, 0], [0, 1.0]), ([0.3, 0.7], [0.3, 0.7])
    assert distances.divergence(*map(np.array, disjoint)) == 1
    assert distances.divergence(*map(np.array, same)) == 0
    # (1, 0) and (1/2, 1/2): H(3/4, 1/4) - (0 + 1) / 2
    found = distances.divergence(np.array([1.0, 0]), np.array([0.5, 0.5]))
    assert found == pytest.approx(-0.75 * math.log2(0.75) + 0.25 * 2 - 0.5)


def test_the_root_is_scipys_distance():
    rows = np.random.default_rng(0).dirichlet(np.ones(6), 2)
    for natural, base in ((False, 2), (True, None)):
        found = distances.spread([rows], distances.Measure(root=True, natural=natural), seed=0)
        assert found.mean == pytest.approx(jensenshannon(*rows, base=base))


@pytest.mark.parametrize("sizes", [(5,), (2, 3), (3, 1, 4)])
def test_every_pair_comes_once(sizes):
    pairs = Pairs(sizes)
    one, other = pairs.at(np.arange(pairs.count))
    owner = np.repeat(np.arange(len(sizes)), sizes)
    expected = [
        pair for pair in itertools.combinations(range(sum(sizes)), 2)
        if len(sizes) == 1 or owner[pair[0]] != owner[pair[1]]
    ]  # fmt: skip
    assert sorted(zip(one.tolist(), other.tolist(), strict=True)) == expected


def test_pairs_of_a_large_set_are_exact():
    one, other = Pairs((5_000_000,)).at(np.array([0, 12_499_997_499_999]))
    assert (one.tolist(), other.tolist()) == ([0, 4_999_998], [1, 4_999_999])


def test_mean_and_deviation_over_pairs_within_and_across():
    left, right = np.array([[1.0, 0], [1.0, 0], [np.nan, np.nan]]), np.array([[0, 1.0], [1.0, 0]])
    within = distances.spread([left], distances.Measure(root=False), seed=0)
    across = distances.spread([left, right], distances.Measure(root=False), seed=0)
    assert (within.mean, within.std, within.pairs, within.left_out) == (0, 0, 1, 1)
    assert (across.mean, across.std, across.pairs, across.standard_error) == (0.5, 0.5, 4, 0)


def test_more_pairs_than_the_limit_are_drawn_with_a_standard_error():
    rows = np.random.default_rng(1).dirichlet(np.ones(4), 80)
    every = distances.spread([rows], distances.Measure(root=True), seed=0)
    drawn = distances.spread([rows], distances.Measure(root=True), seed=0, most=1000)
    assert (every.pairs, drawn.pairs) == (3160, 1000)
    assert drawn.standard_error == pytest.approx(every.std / math.sqrt(1000), rel=0.1)
    assert abs(drawn.mean - every.mean) < 4 * drawn.standard_error
    assert distances.spread([rows], distances.Measure(root=True), seed=1, most=1000).mean != drawn.mean
    assert (
        distances.spread([rows], distances.Measure(root=True), seed=0, most=1000, place=(0, 1)).mean
        != drawn.mean
    )


def test_similarity_of_linked_nodes_is_0_or_1_for_labels(packed, labelled):
    found = distances.similarity_histograms(labelled(packed(PATH, PATH, (1, [])), [0, 0, 1, 2, 2, 2, 0]))
    assert found.shape == (3, 20)
    assert found[0, [0, 19]].tolist() == [0.5, 0.5]
    assert found[1, 19] == 1
    assert np.isnan(found[2]).all()


def test_similarity_of_attributes_falls_into_its_bin(packed, labelled):
    raw = labelled(packed((2, [(0, 1)]), (2, [(0, 1)]), (2, [(0, 1)])))
    vectors = np.array([[1, 0], [3, 4], [1, 0], [-1, 0], [0.1, 0.3], [0.2, 0.6]], np.float32)
    found = distances.similarity_histograms(type(raw)(**{**vars(raw), "node_attributes": vectors}))
    assert found.argmax(axis=1).tolist() == [12, 0, 19]  # cosines 0.6, -1 (counts as 0), 1


def test_histograms_do_not_depend_on_how_many_graphs_are_built_at_once(packed, labelled, monkeypatch):
    raw = labelled(packed(PATH, PATH, PATH), [0, 0, 1, 2, 2, 2, 0, 1, 2])
    whole = distances.similarity_histograms(raw)
    monkeypatch.setattr("fedmpi.heterogeneity.distances._NODES_AT_ONCE", 2)
    assert (distances.similarity_histograms(raw) == whole).all()


def test_table_2_of_cox2(real):
    cox2 = real("COX2")
    ours = distances.heterogeneity([cox2])
    assert ours.structure.pairs == 108_811
    assert ours.structure.mean == pytest.approx(0.046, abs=0.001)
    assert ours.features.mean == pytest.approx(0.0041, abs=0.0001)
    published = distances.heterogeneity([cox2], distances.WalkOptions(length=5, walks=60), as_published=True)
    assert published.structure.mean == pytest.approx(0.3246, abs=0.03)
    assert published.features.mean == pytest.approx(0.0427, abs=0.001)
    assert published.features.std == pytest.approx(0.0314, abs=0.001)


def test_with_60_walks_the_distance_within_cox2_is_sampling_noise(real):
    one, other = (embed(real("COX2").topology, length=5, seed=seed, walks=60) for seed in (0, 1))
    same_graph = np.sqrt(distances.divergence(one, other) * math.log(2))
    assert same_graph.mean() == pytest.approx(0.30, abs=0.005)
