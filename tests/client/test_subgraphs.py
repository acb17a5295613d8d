"""Parts of a large graph: which edges messages take, which examples count, worked out by hand."""

import numpy as np
import pytest

from fedmpi.client.subgraphs import part_counts, part_data
from fedmpi.datasets.networks import in_both_directions, undirected
from fedmpi.heterogeneity.leakage import leakage
from fedmpi.partition.options import Metadata
from fedmpi.partition.partition import make
from tests.making import client, labelled, receivers
from tests.refusals import refused
from tests.tasks.making import make_case


@pytest.fixture
def rated():
    """Two categories; user 7 is in both, as nodes 0 and 3: places (0, 1), (0, 2) and (3, 4), (5, 4)."""
    places = np.array([[0, 1], [0, 2], [3, 4], [5, 4]])
    topology = undirected(places[:, 0], places[:, 1], np.array([0, 3, 6]))
    more = {"task": "regression", "places": places, "node_rows": np.array([7, 10, 11, 7, 12, 8])}
    return labelled(topology, [[1.0], [2.0], [3.0], [4.0]], "r", **more)


def split(train, val, test):
    return client(train, val, test, [7, 8, 10, 11, 12])


def edges(topology):
    return sorted(zip(topology.columns.tolist(), receivers(topology).tolist(), strict=True))


def test_messages_take_training_edges_only_and_a_user_is_one_node(rated):
    one = split([0, 2], [1], [3])
    train, held_out = part_data(make_case(name="Ciao", features="degree"), rated, one)
    assert edges(train.topology) == [(0, 2), (0, 4), (2, 0), (4, 0)]  # 7-10 and 7-12
    assert held_out.topology is train.topology
    assert train.places.tolist() == [[0, 2], [0, 4]]
    assert held_out.places.tolist() == [[0, 3], [1, 4]]
    assert held_out.labels.ravel().tolist() == [2.0, 4.0]
    # degrees in the training edges: user 7 has two, items 10 and 12 one, the others none
    assert train.features.argmax(axis=1).tolist() == [2, 0, 1, 0, 1]


def test_edges_of_a_part_keep_their_attributes():
    pairs = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    topology = undirected(*pairs, np.array([0, 4]))
    values = (10 * topology.columns + receivers(topology)).astype(np.float32)[:, None]
    ring = labelled(topology, [0, 1, 0, 1], "ab", places=np.arange(4), edge_attributes=values)
    train, held_out = part_data(
        make_case(name="x", features="degree"), ring, client([0], [1], [2], [0, 1, 3])
    )
    assert edges(train.topology) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    assert train.edges.ravel().tolist() == [10, 30, 1, 3]
    assert held_out.edges is train.edges


def test_the_width_of_degrees_is_that_of_all_graphs_together(rated):
    one = split([0, 1, 2], [], [3])
    train, _ = part_data(make_case(name="Ciao", features="degree"), rated, one)
    assert train.features.shape == (5, 4)  # user 7 rates three items


def test_in_both_directions_messages_go_as_trained(rated):
    both = in_both_directions(rated)
    assert both.places.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0], [3, 4], [5, 4], [4, 3], [4, 5]]
    assert both.labels.ravel().tolist() == [1, 2, 1, 2, 3, 4, 3, 4]
    one = split([0, 6], [], [2])
    train, _ = part_data(make_case(name="Ciao", features="constant", both_directions=True), both, one)
    assert edges(train.topology) == [(0, 2), (4, 0)]
    (found,) = leakage([one], [both]).clients
    assert found.own.tolist() == [True]  # the other direction of pair 0


def test_both_directions_are_of_edges(rated):
    nodes = labelled(rated.topology, np.zeros(6, np.int64), places=np.arange(6))
    with refused(match="has no labels of edges"):
        in_both_directions(nodes)


def test_a_pass_works_on_the_whole_part(rated):
    one = split([0, 2], [1], [3])
    counts = part_counts(make_case(name="Ciao", features="degree"), rated, one, ("val", "test"))
    assert (counts.graphs, counts.nodes, counts.edges) == (1, 5, 4 + 5)
    assert (counts.examples, counts.entries) == (2, 5)
    plain = part_counts(make_case(name="Ciao", features="constant"), rated, one, ("train",))
    assert (plain.examples, plain.entries) == (2, None)


def test_a_client_has_whole_categories(rated):
    places = np.stack([np.repeat(np.arange(3), 8) * 9, np.arange(27)[np.arange(27) % 9 > 0]], axis=1)
    topology = undirected(*places.T, np.arange(4) * 9)
    many = labelled(topology, np.ones((24, 1)), "r", task="regression", places=places)
    clients = make(Metadata(by="category", clients=2), [many]).clients
    categories = [sorted(set((many.places[client.graphs, 0] // 9).tolist())) for client in clients]
    assert sorted([*categories[0], *categories[1]]) == [0, 1, 2]
    assert [len(each) for each in categories] == [2, 1]
    with refused(match="4 clients cannot share 3 values"):
        make(Metadata(by="category", clients=4), [many])
    with refused(match="has no such metadata"):
        make(Metadata(by="scaffold", clients=2), [many])
