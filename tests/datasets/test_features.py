"""Node features."""

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.datasets.features import build, feature_width
from fedmpi.datasets.tu import read_archive
from fedmpi.datasets.tu_folders import read_folder
from fedmpi.graphs.packed import Topology
from tests.refusals import refused


@pytest.fixture
def raw(make_folder, toy):
    return read_folder(make_folder(toy), "FOO", "FOO")


@pytest.fixture
def bare(make_archive, toy):
    """Neither labels nor attributes."""
    parts = {part: text for part, text in toy.items() if not part.startswith("node")}
    return read_archive(make_archive("FOO", parts), "FOO", "FOO")


def test_labels_are_one_hot(raw):
    assert build(raw, np.array([0, 1, 2]), "constant").features.tolist() == [[1]] * 7
    graphs = build(raw, np.array([2, 0]), "labels")
    assert graphs.features.dtype == np.float32
    assert graphs.features.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]
    assert graphs.labels.tolist() == [1, 1]
    assert graphs.topology.columns.tolist() == [2, 3, 1, 3, 1, 2]


def test_several_label_columns_stand_side_by_side(make_folder, toy):
    toy["node_labels"] = "0, 3\n1, 3\n0, 4\n0, 3\n0, 3\n0, 3\n2, 3\n"
    raw = read_folder(make_folder(toy), "FOO", "FOO")
    assert build(raw, np.array([2]), "labels").features.tolist() == [[0, 0, 1, 1, 0]]


def test_attributes_come_before_labels(raw):
    assert build(raw, np.array([2]), "labels+attributes").features.tolist() == [[-6.5, 70, 0, 0, 1, 0]]
    assert build(raw, np.array([2]), "attributes").features.tolist() == [[-6.5, 70]]


def test_original_takes_what_there_is(raw, bare):
    assert feature_width(raw, "original") == 4
    assert feature_width(bare, "original") == 3
    assert build(bare, np.array([0]), "original").features.tolist() == [[0, 0, 1]] * 3


@pytest.mark.parametrize(
    "kind", ["original", "labels", "attributes", "labels+attributes", "degree", "constant"]
)
def test_width_is_that_of_the_features(raw, kind):
    assert build(raw, np.array([0]), kind).features.shape == (3, feature_width(raw, kind))


def test_degree_is_one_hot_up_to_the_largest(raw):
    path = build(raw, np.array([1]), "degree").features
    assert path.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert build(raw, np.array([1]), "degree", degree_max=4).features.shape == (3, 5)
    with refused("node of degree 2, above the maximum 1"):
        build(raw, np.array([1]), "degree", degree_max=1)
    one_way = Topology(np.array([0, 3]), np.array([0, 0, 1, 2]), np.array([0, 0]))  # from node 0 to 1 and 2
    outgoing = build(replace(raw, topology=one_way, labels=raw.labels[:1]), np.array([0]), "degree")
    assert outgoing.features.argmax(axis=1).tolist() == [2, 0, 0]


@pytest.mark.parametrize("kind", ["labels", "attributes", "labels+attributes"])
def test_features_a_dataset_has_not_are_refused_with_those_that_it_has(raw, bare, kind):
    with refused("FOO has no node"):
        feature_width(bare, kind)
    with refused("no node labels: choose features 'original', 'attributes', 'degree' or"):
        feature_width(replace(raw, node_labels=None), "labels")
