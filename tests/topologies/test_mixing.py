"""Weights by hand on ring and star, and what holds of every topology."""

import itertools

import numpy as np
import pytest

from fedmpi.errors import BadInput
from fedmpi.topologies.drawn import ErdosRenyiOptions, RegularOptions
from fedmpi.topologies.exponential import ExponentialOptions, OnePeerOptions
from fedmpi.topologies.fixed import CompleteOptions, RingOptions, StarOptions, TorusOptions
from fedmpi.topologies.listed import FileOptions
from fedmpi.topologies.mixing import Mixing, refuse_unfit
from tests.refusals import refused

EVERY = [
    RingOptions(), TorusOptions(), StarOptions(), CompleteOptions(), ExponentialOptions(), OnePeerOptions(),
    RegularOptions(degree=3), ErdosRenyiOptions(p=0.4),
]  # fmt: skip


def turns(topology, clients=16, seed=1):
    return [Mixing.of(topology, clients, turn, seed) for turn in range(topology.period(clients))]


def by_name(topology):
    return topology.name


def test_weights_of_a_ring():
    third = 1 / 3
    assert Mixing.of(RingOptions(), 4, 0, 0).dense() == pytest.approx(
        np.array(
            [
                [third, third, 0, third],
                [third, third, third, 0],
                [0, third, third, third],
                [third, 0, third, third],
            ]
        )
    )


def test_weights_of_a_star():
    star = Mixing.of(StarOptions(), 4, 0, 0)
    assert star.dense().tolist() == [
        [0.25, 0.25, 0.25, 0.25],
        [0.25, 0.75, 0, 0],
        [0.25, 0, 0.75, 0],
        [0.25, 0, 0, 0.75],
    ]
    assert (star.degree.tolist(), star.divisor) == ([3, 1, 1, 1], 4)
    assert [each.tolist() for each in star.row(0)] == [[1, 2, 3], [1, 1, 1]]


@pytest.mark.parametrize("topology", EVERY, ids=by_name)
def test_weights_are_doubly_stochastic(topology):
    for mixing in turns(topology):
        whole = np.zeros((16, 16), np.int64)
        whole[mixing.receivers, mixing.senders] = mixing.weights
        np.fill_diagonal(whole, mixing.divisor - whole.sum(axis=1))
        assert whole.min() >= 0
        assert (whole.sum(axis=0) == mixing.divisor).all()
        assert topology.directed or np.array_equal(whole, whole.T)


def test_weights_without_a_small_common_divisor_have_29_bits(tmp_path):
    (tmp_path / "trees").write_text("".join(f"{hub} {leaf}\n" for hub, leaf in stars(range(4, 40))))
    clients = 1 + max(max(edge) for edge in stars(range(4, 40)))
    mixing = Mixing.of(FileOptions(path=str(tmp_path / "trees")), clients, 0, 0)
    assert mixing.divisor == 2**29
    found = mixing.dense()
    assert np.array_equal(found, found.T) and found.min() >= 0
    assert found.sum(axis=0) == pytest.approx(np.ones(clients), abs=1e-15)


def stars(sizes):
    """Return the edges of stars of so many leaves, whose hubs are a path."""
    hubs, leaf = list(range(len(sizes))), len(sizes)
    edges = list(itertools.pairwise(hubs))
    for hub, size in zip(hubs, sizes, strict=True):
        edges += [(hub, leaf + place) for place in range(size)]
        leaf += size
    return edges


def test_spectral_gaps_of_published_graphs():
    # ring: eigenvalues (1 + 2 cos(2 pi k / n)) / 3; torus of 4 x 4: (1 + 2 cos + 2 cos) / 5; exponential: 2 / (1 + log2 n)
    ring = 1 - (1 + 2 * np.cos(2 * np.pi / 16)) / 3
    expected = {"ring": ring, "torus": 0.4, "exponential": 0.4, "star": 1 / 16, "complete": 1.0}
    found = {each.name: turns(each)[0].spectral_gap for each in EVERY}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


def test_one_peer_has_the_mean_after_a_period_of_a_power_of_two():
    product = np.eye(16)
    for mixing in turns(OnePeerOptions()):
        assert (mixing.degree == 1).all()
        product = mixing.dense() @ product
    assert product == pytest.approx(np.full((16, 16), 1 / 16))


def test_random_graphs_are_those_of_their_seed():
    for topology in (RegularOptions(degree=4), ErdosRenyiOptions(p=0.4)):
        first, again, other = (topology.links(16, 0, seed) for seed in (1, 1, 2))
        assert np.array_equal(first, again) and not np.array_equal(first, other)
    for clients, degree in ((16, 4), (16, 11), (200, 196), (5, 4)):
        assert set(Mixing.of(RegularOptions(degree=degree), clients, 0, 1).degree.tolist()) == {degree}


@pytest.mark.parametrize(
    ("topology", "clients", "text"),
    [
        (RingOptions(), 1, "one client has nobody to average with"),
        (TorusOptions(), 7, '7 clients make no grid of several rows: use "ring"'),
        (RegularOptions(degree=5), 5, "5 clients have 4 neighbours at most: use fewer"),
        (RegularOptions(degree=3), 5, "5 clients cannot have 3 each: use an even degree"),
        (ErdosRenyiOptions(p=0.01), 16, "no path joins clients 0 and 1: use more edges, or another seed"),
    ],
)
def test_graphs_that_cannot_be(topology, clients, text):
    with refused(text, BadInput):
        refuse_unfit(topology, clients, 0)


def test_a_file_of_edges(tmp_path):
    path = tmp_path / "edges"
    path.write_text("# a path\n0 1\n1 2\n\n2 1\n1 1\n")
    topology = FileOptions(path=str(path))
    assert topology.links(3, 0, 0).tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    refuse_unfit(topology, 3, 0)
    path.write_text("0 1\n0 2\n")  # a sweep begins its cases later
    assert topology.links(3, 0, 0).tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    for text, line in (
        ("0 1\n1 3", "line 2: use clients 0 to 2"),
        ("0 one", "line 1: use two numbers of clients"),
        ("0 " + "9" * 5000, "line 1: use two numbers of clients"),
    ):
        path.write_text(text)
        with refused(line, BadInput):
            refuse_unfit(FileOptions(path=str(path)), 3, 0)
    with pytest.raises(ValueError, match="is not the file that the run began with: give that one"):
        FileOptions(path=str(path), sha256=topology.sha256)
    with pytest.raises(
        ValueError, match=r"cannot be read \(No such file or directory\): give a file of edges"
    ):
        FileOptions(path=str(tmp_path / "none"))
