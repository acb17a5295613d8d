"""Cuts of one graph: communities, METIS, and what clients then hold."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.datasets.egos import EgoOptions, ego_networks
from fedmpi.datasets.families.synthetic_networks import NetworkSize, nodes
from fedmpi.datasets.networks import undirected
from fedmpi.graphs.packed import induced
from fedmpi.partition.cuts import edges_of, joined
from fedmpi.partition.options import DirichletLabel, FedGraphNN, Iid, Louvain, Metis, PerDataset
from fedmpi.partition.partition import make, pooled
from fedmpi.partition.table import describe
from tests.making import clique, without_edges
from tests.making import labelled as of_classes
from tests.refusals import refused

SIZE = 40
GROUPS = np.repeat(np.arange(4), SIZE)


@pytest.fixture(scope="module")
def four_cliques():
    """Four complete graphs of 40 nodes, joined to a ring by single edges."""
    pairs = [(group * SIZE + a, group * SIZE + b) for group in range(4) for a, b in clique(SIZE)[1]]
    pairs += [(group * SIZE, (group + 1) % 4 * SIZE + 1) for group in range(4)]
    first, second = np.array(pairs).T
    topology = undirected(first, second, np.array([0, 4 * SIZE]))
    labels = np.arange(4 * SIZE) % 3
    parts = np.where(np.arange(4 * SIZE) % 4 == 0, 0, np.where(np.arange(4 * SIZE) % 4 == 1, 1, 2))
    more = {"places": np.arange(4 * SIZE), "parts": parts.astype(np.int8)}
    return of_classes(topology, labels, "012", "RING", **more)


@pytest.mark.parametrize("kind", [Louvain, Metis])
def test_what_hangs_together_stays_together_and_edges_between_clients_are_counted(four_cliques, kind):
    partition = make(kind(clients=4), [four_cliques])
    held = sorted(tuple(GROUPS[client.nodes]) for client in partition.clients)
    assert held == [(group,) * SIZE for group in range(4)]
    for client in partition.clients:
        topology, _ = induced(four_cliques.topology, client.nodes)
        assert topology.num_edges == SIZE * (SIZE - 1)
        assert sorted(client.graphs.tolist()) == client.nodes.tolist()
    edges = 4 * SIZE * (SIZE - 1) // 2 + 4
    assert describe(partition, [four_cliques]).edges == (edges, 4)
    assert describe(make(kind(clients=1), [four_cliques]), [four_cliques]).edges == (edges, 0)
    (centre,) = pooled(partition).clients
    assert np.array_equal(centre.nodes, np.arange(4 * SIZE))


@pytest.mark.parametrize("kind", [Louvain, Metis])
def test_labelled_edges_go_where_both_ends_are(four_cliques, kind):
    places = edges_of(four_cliques.topology)
    labels = np.arange(len(places)) % 2
    raw = of_classes(without_edges(4 * SIZE), labels, "01", places=places)
    partition = make(kind(clients=4), [raw])
    for client in partition.clients:
        assert len(set(GROUPS[places[client.graphs]].ravel())) == 1
    assert describe(partition, [raw]).edges == (len(places), 4)


@pytest.mark.parametrize("kind", [Louvain, Metis])
def test_a_cut_is_a_function_of_its_options(kind):
    raw = nodes(NetworkSize())
    first, again = (make(kind(clients=5), [raw]).clients for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.nodes, other.nodes)
        assert np.array_equal(one.test, other.test)
    assert sorted(np.concatenate([client.nodes for client in first]).tolist()) == list(range(600))


def test_groups_are_joined_to_clients_of_about_one_size_or_halved():
    groups = [np.arange(0, 5), np.arange(5, 9), np.arange(9, 12), np.arange(12, 14)]
    together = [each.tolist() for each in joined(groups, 2, 0)]
    assert together == [[0, 1, 2, 3, 4, 12, 13], [5, 6, 7, 8, 9, 10, 11]]
    halved = joined([np.arange(8)], 4, 0)
    assert [len(each) for each in halved] == [2, 2, 2, 2]
    assert sorted(np.concatenate(halved).tolist()) == list(range(8))
    with refused(match="use fewer clients"):
        joined([np.arange(3)], 4, 0)


@pytest.mark.parametrize(
    "options", [Iid(clients=3), DirichletLabel(clients=3), FedGraphNN(clients=3, alpha=5.0), PerDataset()]
)
def test_every_partition_deals_out_nodes_of_one_graph(four_cliques, options):
    clients = make(options, [four_cliques]).clients
    dealt = np.concatenate([client.graphs for client in clients])
    assert sorted(dealt.tolist()) == list(range(4 * SIZE))
    for client in clients:
        assert np.array_equal(client.nodes, np.sort(client.graphs))
        assert np.array_equal(client.examples(four_cliques, "test"), client.test)
        assert client.steps_of == 1


def test_parts_are_of_the_shares_asked_for_or_those_of_the_dataset(four_cliques):
    for parts, sizes in (("80/10/10", [128, 16, 16]), ("60/20/20", [96, 32, 32]), ("20/30/50", [32, 48, 80])):
        (client,) = make(Iid(clients=1, parts=parts), [four_cliques]).clients
        assert [len(client.train), len(client.val), len(client.test)] == sizes
    clients = make(Iid(clients=2, parts="dataset"), [four_cliques]).clients
    for number, part in enumerate(("train", "val", "test")):
        held = np.concatenate([getattr(client, part) for client in clients])
        assert (four_cliques.parts[held] == number).all()
    with refused(match="fixes no parts"):
        make(Iid(clients=2, parts="dataset"), [nodes(NetworkSize())])


@pytest.mark.parametrize("parts", ["70/20/20", "20/80", "100/0/0", "020/20/60", "20/20/60/0", "a/b/c", ""])
def test_parts_are_three_whole_percents_of_100(parts):
    with pytest.raises(ValidationError, match="three whole percents"):
        Iid(clients=1, parts=parts)


def test_what_is_not_one_large_graph_is_not_cut(four_cliques, labelled):
    egos = ego_networks(four_cliques, EgoOptions(number=20, hops=1))
    for options, raw, message in (
        (Louvain(clients=2), labelled([20, 20]), "cuts one large graph"),
        (Louvain(clients=2), egos, r"cuts one large graph.*remove dataset\.egos"),
        (Iid(clients=2, parts="dataset"), egos, "RING fixes no parts of ego-networks"),
    ):
        with refused(match=message):
            make(options, [raw])


def test_an_induced_graph_has_the_edges_between_its_nodes():
    topology = undirected(np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 4, 4]), np.array([0, 5]))
    part, edges = induced(topology, np.array([4, 0, 2]))
    assert part.graph_ptr.tolist() == [0, 3]
    assert (part.row_ptr.tolist(), part.columns.tolist()) == ([0, 1, 2, 2], [1, 0])
    assert topology.columns[edges].tolist() == [0, 4]
