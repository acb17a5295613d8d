"""Heterogeneity between clients and within clusters, and agreement with domains."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from fedmpi.datasets.tables import DOMAINS, KNOWN
from fedmpi.heterogeneity import clusters
from fedmpi.heterogeneity.agreement import domains_of
from fedmpi.heterogeneity.clusters import (
    agreement,
    client_tables,
    control,
    pair_table,
    random_partitions,
    within,
    within_one,
)
from fedmpi.heterogeneity.distances import Measure, WalkOptions, heterogeneity

LEFT, RIGHT, NONE = [1.0, 0.0], [0.0, 1.0], [math.nan, math.nan]
DIVERGENCE = Measure(root=False)
EDGE, PATH, TRIANGLE, DOT = (2, [(0, 1)]), (3, [(0, 1), (1, 2)]), (3, [(0, 1), (1, 2), (0, 2)]), (1, [])


@dataclass(frozen=True)
class Holder:
    dataset: int
    graphs: np.ndarray


@pytest.fixture
def three():
    """Clients with the distributions LL, R and LR, and one graph without edges."""
    held = map(np.array, ([LEFT, LEFT, NONE], [RIGHT], [LEFT, RIGHT]))
    return pair_table([*held], DIVERGENCE, seed=0)


def test_pairs_of_two_clients_and_of_one(three):
    assert three.pairs.tolist() == [[1, 2, 4], [2, 0, 2], [4, 2, 1]]
    expected = [[0, 1, 0.5], [1, math.nan, 0.5], [0.5, 0.5, 1]]
    np.testing.assert_array_equal(three.mean, expected)
    assert three.standard_error[0, 2] == 0


def test_all_clients_together_are_all_pairs_of_graphs(three):
    found = within(three, np.zeros(3, int))  # L L R L R: 6 of the 10 pairs are of an L and an R
    assert (found.mean, found.pairs, found.standard_error) == (pytest.approx(0.6), 10, 0)


def test_pairs_count_whose_clients_share_a_cluster(three):
    group = np.array([0, 1, 0])
    every, different = within(three, group), within(three, group, own=False)
    assert (every.mean, every.pairs) == (0.5, 6)  # L L L R: 3 of 6
    assert (different.mean, different.pairs) == (0.5, 4)
    assert within_one(three, group == 1).pairs == 0


def test_clients_alone_have_no_pairs_of_different_clients(three):
    found = within(three, np.arange(3), own=False)
    assert math.isnan(found.mean) and found.pairs == 0
    assert within(three, np.arange(3)).mean == 0.5  # a level lower than 0.6, and nobody was grouped


def test_drawn_pairs_come_with_a_standard_error(monkeypatch):
    rng = np.random.default_rng(0)
    held = [rng.dirichlet(np.ones(4), 60), rng.dirichlet([5, 1, 1, 1], 50)]
    every = pair_table(held, DIVERGENCE, seed=0)
    monkeypatch.setattr(clusters, "MOST_PAIRS_OF_TWO_CLIENTS", 400)
    drawn = pair_table(held, DIVERGENCE, seed=0)
    assert drawn.pairs.tolist() == every.pairs.tolist() == [[1770, 3000], [3000, 1225]]
    exact, found = within(every, np.zeros(2, int)), within(drawn, np.zeros(2, int))
    assert exact.standard_error == 0 < found.standard_error < 0.02
    assert abs(found.mean - exact.mean) < 4 * found.standard_error
    np.testing.assert_array_equal(drawn.mean, pair_table(held, DIVERGENCE, seed=0).mean)


def test_random_partitions_keep_the_sizes():
    group = np.array([4, 4, 4, 7, 9])
    drawn = random_partitions(group, seed=1, draws=50)
    assert (np.sort(drawn, axis=1) == np.sort(group)).all()
    assert len(np.unique(drawn, axis=0)) > 10
    np.testing.assert_array_equal(drawn, random_partitions(group, seed=1, draws=50))


def test_the_control_says_what_chance_gives():
    held = [np.array([row]) for row in (LEFT, LEFT, RIGHT, RIGHT)]
    table = pair_table(held, DIVERGENCE, seed=0)
    group = np.array([0, 0, 1, 1])
    assert within(table, group, own=False).mean == 0
    # Of the three ways to make two pairs one is this; in the others each pair is an L and an R.
    found = control(lambda drawn: within(table, drawn, own=False).mean, group, seed=0, draws=2000)
    assert found.mean == pytest.approx(2 / 3, abs=0.04)
    assert found.std == pytest.approx(math.sqrt(2) / 3, abs=0.04)
    assert found.as_low == pytest.approx(1 / 3, abs=0.04)
    assert found.as_high == 1
    assert not found.constant


def test_one_cluster_has_no_control():
    table = pair_table([np.array([LEFT]), np.array([RIGHT])], DIVERGENCE, seed=0)
    assert control(lambda drawn: within(table, drawn).mean, np.zeros(2, int), seed=0).constant
    alone = control(lambda drawn: within(table, drawn, own=False).mean, np.arange(2), seed=0)
    assert math.isnan(alone.mean) and math.isnan(alone.as_low)


def test_clients_of_two_datasets(packed, labelled):
    raws = [labelled(packed(EDGE, TRIANGLE, DOT), [0, 1, 0, 0, 0, 0]), labelled(packed(EDGE), [0, 0])]
    held = [Holder(0, np.array([0, 0, 2])), Holder(0, np.array([1])), Holder(1, np.array([0]))]
    found = client_tables(held, raws, WalkOptions(length=2))
    assert found.left_out.tolist() == [1, 0, 0]
    # A graph is held twice: a pair at distance 0. The edge's walks are all 0 1 0, as in the other dataset.
    assert (found.structure.pairs[0, 0], found.structure.mean[0, 0], found.structure.mean[0, 2]) == (1, 0, 0)
    assert 0.5 < found.structure.mean[0, 1] < 1  # a triangle's walks are 0 1 0 or 0 1 2
    # Nodes of the first edge differ, those of triangle and second edge are alike.
    assert found.features.mean[1].tolist()[::2] == [1, 0]
    constant = client_tables(held, raws, WalkOptions(length=2), "constant").features
    assert constant.mean[0].tolist() == [0, 0, 0]


def test_every_known_dataset_has_a_domain():
    assert set(DOMAINS) == set(KNOWN)
    assert (DOMAINS["NCI1"], DOMAINS["DD"], DOMAINS["COLLAB"]) == ("molecules", "proteins", "social networks")


def test_agreement_needs_two_known_domains():
    assert domains_of(["MUTAG", "DD", "BZR"]) == ("molecules", "proteins", "molecules")
    assert domains_of(["MUTAG", "NCI1"]) is None
    assert domains_of(["MUTAG", "DD", "./own"]) is None


def test_agreement_is_1_for_the_domains_and_0_by_chance():
    domains = ("a", "a", "a", "b", "b", "b")
    same = agreement(np.array([5, 5, 5, 2, 2, 2]), domains, seed=0, draws=2000)
    assert same.adjusted_rand_index == 1
    assert abs(same.random.mean) < 0.03
    assert same.random.as_high == pytest.approx(1 / 10, abs=0.03)  # of 20 ways to choose three, two fit
    # A b among the a's: 3 + 1 pairs share both; 6 * 7 / 15 would by chance, (6 + 7) / 2 at most.
    mixed = agreement(np.array([0, 0, 0, 0, 1, 1]), domains, seed=0)
    assert mixed.adjusted_rand_index == pytest.approx((4 - 2.8) / (6.5 - 2.8))


def test_before_clustering_it_is_the_heterogeneity_of_the_dataset(packed, labelled):
    raw = labelled(packed(EDGE, PATH, TRIANGLE, DOT, PATH), [0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0])
    held = [Holder(0, np.array([4, 0])), Holder(0, np.array([1, 2, 3]))]
    walks = WalkOptions(walks=40)
    tables, whole = client_tables(held, [raw], walks), heterogeneity([raw], walks)
    together = np.zeros(2, int)
    assert within(tables.structure, together).mean == pytest.approx(whole.structure.mean)
    assert within(tables.features, together).mean == pytest.approx(whole.features.mean)
    assert within(tables.features, together).pairs == whole.features.pairs == 6
