import numpy as np
import pytest

from fedmpi.algorithms.signatures import average_hash, bit_rows, cosine_similarity, hash_similarity
from fedmpi.algorithms.similarity_clusters import (
    best_silhouette,
    cut_at_distance,
    cut_at_number,
    k_means,
    numbered,
    tree,
)
from fedmpi.client.layouts import MessageLayout
from fedmpi.models.options import GinOptions
from tests.algorithms.programs import client_of, named, round_of
from tests.refusals import refused


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ([0.0, 3.0, 2.0, 3.0], 0b1010),  # the mean is 2; its equal gives 0
        ([0.5, -1.0, 2.0, 0.1, 7.0], 0b10100),  # mean 1.72
        (100 * np.array([0.5, -1.0, 2.0, 0.1, 7.0]) + 3, 0b10100),  # scale and shift change nothing
        (np.ones(64), 0),
        (np.arange(64) == 63, 2**63),  # the last bit is the highest
    ],
)
def test_a_bit_is_set_where_an_element_is_above_the_mean(values, bits):
    assert average_hash(np.array(values)) == bits


def test_similarity_is_one_minus_the_share_of_differing_bits():
    found = hash_similarity(np.array([0b0000, 0b0011, 0b1111], np.uint64), 4)
    assert found.tolist() == [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]


def test_cosine_of_orthogonal_opposite_and_zero_vectors():
    found = cosine_similarity(np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]], np.float32))
    assert found.tolist() == [[1, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 1, 0], [0, 0, 0, 1]]


def test_bits_as_numbers():
    assert bit_rows(np.array([6], np.uint64), 4).tolist() == [[0.0, 1.0, 1.0, 0.0]]


# Distances: 0-1 0.1, 2-3 0.2, 1-2 0.4, 0-2 0.5, 1-3 0.6, 0-3 0.7.
CHAIN = 1 - np.array([[0.0, 0.1, 0.5, 0.7], [0.1, 0.0, 0.4, 0.6], [0.5, 0.4, 0.0, 0.2], [0.7, 0.6, 0.2, 0.0]])


@pytest.mark.parametrize(("linkage", "last"), [("single", 0.4), ("complete", 0.7), ("average", 0.55)])
def test_the_last_merge_is_at_the_smallest_largest_or_mean_distance(linkage, last):
    assert tree(CHAIN, linkage)[:, 2] == pytest.approx([0.1, 0.2, last])
    assert tree(CHAIN, "ward")[0, 2] == pytest.approx(0.1**0.5)  # on the roots of the distances


def test_cuts_of_a_tree():
    merges = tree(CHAIN, "average")
    assert cut_at_number(merges, 2).tolist() == [0, 0, 1, 1]
    assert cut_at_number(merges, 3).tolist() == [0, 0, 1, 2]
    assert cut_at_number(merges, 4).tolist() == cut_at_number(merges, 9).tolist() == [0, 1, 2, 3]
    assert cut_at_distance(merges, 0.15).tolist() == [0, 0, 1, 2]
    assert cut_at_distance(merges, 0.05).tolist() == [0, 1, 2, 3]
    assert cut_at_distance(merges, 0.6).tolist() == [0, 0, 0, 0]


def test_the_silhouette_chooses_the_number_of_clusters():
    # Three tight pairs, all else far apart: three clusters of two.
    distances = np.full((6, 6), 1.0)
    for first in (0, 2, 4):
        distances[first : first + 2, first : first + 2] = 0.1
    np.fill_diagonal(distances, 0.0)
    merges = tree(1 - distances, "average")
    found = best_silhouette(1 - distances, lambda clusters: cut_at_number(merges, clusters))
    assert found.tolist() == [0, 0, 1, 1, 2, 2]


def test_no_more_clusters_than_half_the_clients_are_tried():
    tried = []
    best_silhouette(np.eye(7), lambda clusters: tried.append(clusters) or np.arange(7) % clusters)
    assert tried == [2, 3]


def test_clients_that_are_few_or_that_nothing_tells_apart_are_one_cluster():
    for count in (1, 2):
        assert best_silhouette(np.eye(count), lambda clusters: np.arange(clusters)).tolist() == [0] * count
    same = np.ones((5, 5))
    merges = tree(same, "average")
    assert cut_at_number(merges, 4).tolist() == cut_at_number(merges, 5).tolist() == [0] * 5
    assert best_silhouette(same, lambda clusters: cut_at_number(merges, clusters)).tolist() == [0] * 5


def test_k_means_finds_two_groups_of_bits_and_never_more_than_there_are():
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    for clusters in (2, 3):
        assert k_means(points, clusters, 5).tolist() == [0, 1, 0, 1]
    assert numbered([7, 3, 7, 1, 3]).tolist() == [0, 1, 0, 2, 1]  # by their first clients


LOW, HIGH = np.repeat([1.0, 0.0], 32), np.repeat([0.0, 1.0], 32)


def sent(algorithm, values, client=0, round=0):
    """Return what a client sends whose mean embedding has these values."""
    one = client_of(seed=3, id=client, round=round, mean_embedding=lambda: np.asarray(values, np.float64))
    algorithm.trained(one)
    return one.sent


def grouped(algorithm, clients, domains=None):
    """Return the groups of clients with these mean embeddings, and what is recorded."""
    layout = MessageLayout(algorithm.messages(GinOptions(), 2))
    found = [sent(algorithm, values) for values in clients]
    deltas = np.ones((len(clients), 1), np.float32)
    decided = round_of(algorithm, deltas, layout=layout, sent=found, domains=domains).decided
    return decided.group.tolist(), decided.recorded


@pytest.mark.parametrize(("signature", "size"), [("hash", 8), ("random", 8), ("embedding", 256)])
def test_a_signature_takes_eight_bytes_and_an_embedding_four_per_channel(signature, size):
    algorithm = named("fedcch", signature=signature)
    ((name, message),) = algorithm.messages(GinOptions(), 2).items()
    array = sent(algorithm, np.arange(64))[name]
    assert (array.shape, array.dtype) == (message.shape, message.dtype)
    assert array.nbytes == MessageLayout({name: message}).nbytes == size


def test_the_server_groups_by_the_signatures_that_it_gets():
    groups, found = grouped(named("fedcch"), (LOW, HIGH, LOW, HIGH, HIGH))
    assert groups == [0, 1, 0, 1, 1]
    assert found["signature"].tolist() == [2**32 - 1, 2**64 - 2**32, 2**32 - 1, 2**64 - 2**32, 2**64 - 2**32]
    assert found["similarity"][0].tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [
        {"signature": "embedding"},
        {"method": "k-means"},
        {"method": "k-means", "signature": "embedding"},
        {"cut": "clusters"},
        {"cut": "distance", "distance": 0.5},
        {"linkage": "ward", "cut": "clusters"},
    ],
)
def test_every_way_of_clustering_tells_opposite_clients_apart(options):
    assert grouped(named("fedcch", **options), (LOW, HIGH, LOW, HIGH))[0] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("domains", "index"), [(("a", "b", "a", "b"), 1.0), (("a", "a", "b", "b"), -0.5), (None, np.nan)]
)
def test_the_agreement_of_clusters_and_domains_is_recorded(domains, index):
    _, found = grouped(named("fedcch"), (LOW, HIGH, LOW, HIGH), domains)
    assert found["domain_agreement"] == pytest.approx(index, nan_ok=True)


def test_random_signatures_depend_on_client_and_round_and_not_on_the_model():
    def signature(values, client, round):
        return sent(named("fedcch", signature="random"), values, client, round)["signature"].tolist()

    first = signature(np.ones(64), 1, 2)
    assert first == signature(np.arange(64), 1, 2)
    assert first != signature(np.ones(64), 2, 2)
    assert first != signature(np.ones(64), 1, 3)


@pytest.mark.parametrize(
    ("options", "hidden", "words"),
    [
        ({}, 32, "model.hidden must be 64"),
        ({"method": "k-means", "cut": "distance"}, 64, "k-means has no distance"),
        ({"clusters": 3}, 64, "does not read clusters with cut = silhouette"),
        ({"distance": 0.5}, 64, "does not read distance"),
        ({"method": "k-means", "linkage": "ward"}, 64, "does not read linkage with method = k-means"),
        ({"pf": "shared"}, 64, "reads pf for a model with GraphNorm only"),
    ],
)
def test_options_that_would_not_be_read_are_refused(options, hidden, words):
    with refused(match=words):
        named("fedcch", **options).validate(GinOptions(hidden=hidden))
