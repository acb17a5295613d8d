"""Who holds which graphs."""

import numpy as np
import pytest

from fedmpi.partition.options import Chunks, DirichletLabel, DirichletQuantity, FedGraphNN, Iid, PerDataset
from fedmpi.partition.partition import make, with_public
from fedmpi.partition.table import describe
from tests.refusals import refused

GOLDEN = {
    "PROTEINS": "109 114 101 123 107 111 107 128 103 110",
    "IMDB-BINARY": "98 106 92 112 98 95 94 115 93 97",
    "NCI1": "129 137 148 142 131 135 139 142 131 124 129 123 122 144 152 137 142 143 116 138 "
    "153 136 132 147 134 142 148 162 123 129",
}
RANGES = {
    # smallest and largest training, validation and test part of GCFL's released code
    "PROTEINS": ([80, 10, 11], [102, 13, 13]),
    "IMDB-BINARY": ([73, 9, 10], [92, 11, 12]),
    "NCI1": ([92, 12, 12], [129, 16, 17]),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_chunks_have_the_published_sizes(real, name):
    raw = real(name)
    clients = len(GOLDEN[name].split())
    table = describe(make(Chunks(clients=clients), [raw]), [raw])
    assert " ".join(map(str, table.sizes.sum(axis=1))) == GOLDEN[name]
    assert (table.sizes.min(axis=0).tolist(), table.sizes.max(axis=0).tolist()) == RANGES[name]


def test_chunks_give_every_client_a_block_in_file_order(labelled):
    partition = make(Chunks(clients=4), [labelled([150, 150])])
    for index, client in enumerate(partition.clients):
        assert set(range(50 * index, 50 * index + 50)) <= set(client.graphs.tolist())


def test_overlap_draws_the_published_sizes_with_replacement(labelled):
    raw = labelled([600, 513])
    partition = make(Chunks(clients=10, overlap=True), [raw])
    sizes = describe(partition, [raw]).sizes.sum(axis=1)
    assert sizes.tolist() == [116, 142, 148, 67, 133, 107, 136, 147, 146, 97]
    drawn = np.concatenate([client.graphs for client in partition.clients])
    assert len(np.unique(drawn)) < len(drawn)


DEALING = [
    Chunks(clients=5),
    Iid(clients=5),
    DirichletLabel(clients=5, alpha=0.5),
    DirichletQuantity(clients=5, alpha=0.5),
    PerDataset(),
]
FEDGRAPHNN = [FedGraphNN(allocation=each, alpha=5.0) for each in ("quantity", "label", "uniform")]


@pytest.mark.parametrize("options", DEALING + FEDGRAPHNN, ids=lambda options: options.name)
def test_every_graph_has_one_place(labelled, options):
    partition = make(options, [labelled([120, 200, 80])])
    held = np.concatenate([client.graphs for client in partition.clients])
    assert sorted(held.tolist()) == list(range(400))


@pytest.mark.parametrize("options", DEALING, ids=lambda options: options.name)
def test_partition_is_a_function_of_the_split_seed(labelled, options):
    raws = [labelled([120, 200, 80])]
    first, second, other = (
        [client.train.tolist() for client in make(chosen, raws).clients]
        for chosen in (options, options, options.model_copy(update={"seed": 7}))
    )
    assert first == second != other


def test_small_alpha_skews_classes_more(labelled):
    raw = labelled([500, 500])
    dealt = (make(DirichletLabel(clients=5, alpha=alpha), [raw]) for alpha in (100, 0.3))
    skew = [describe(partition, [raw]).total_emd for partition in dealt]
    assert skew[0] < 0.2 < skew[1]


def test_dirichlet_keeps_the_least_number_of_graphs(labelled):
    raw = labelled([100, 100])
    least = {"clients": 8, "min_graphs": 12}
    for options in (DirichletLabel(alpha=0.5, **least), DirichletQuantity(alpha=2, **least)):
        assert describe(make(options, [raw]), [raw]).sizes.sum(axis=1).min() >= 12
    with refused(match="use a larger alpha"):
        make(DirichletQuantity(clients=10, alpha=0.01, min_graphs=19), [raw])
    with refused(match="need more than the 200 there are"):
        make(DirichletQuantity(clients=21), [raw])


def test_one_client_per_dataset(labelled):
    raws = [labelled([100, 100], "FIRST"), labelled([50, 60, 70], "SECOND")]
    partition = make(PerDataset(), raws)
    assert [(client.name, client.dataset) for client in partition.clients] == [("FIRST", 0), ("SECOND", 1)]
    assert [len(client.train) for client in partition.clients] == [160, 144]


def test_tiny_takes_150_graphs_of_each(labelled):
    raws = [labelled([300, 100], "FIRST"), labelled([60, 60, 60], "SECOND")]
    table = describe(make(PerDataset(tiny=True), raws), raws)
    assert table.sizes.tolist() == [[120, 15, 15], [120, 15, 15]]
    assert np.abs(table.class_counts - [[112, 38, 0], [50, 50, 50]]).max() <= 1
    with refused(match="cannot draw 150 stratified graphs from the 100 of SMALL"):
        make(PerDataset(tiny=True), [labelled([50, 50], "SMALL")])


def test_a_share_of_each_clients_training_graphs_is_public(labelled):
    raw = labelled([60, 40])
    whole = make(Iid(clients=3), [raw])
    given = with_public(whole, 0.25, seed=1)
    for before, after in zip(whole.clients, given.clients, strict=True):
        gone = np.setdiff1d(before.train, after.train)
        assert len(gone) == int(0.25 * len(before.train) + 0.5) and np.isin(gone, given.public).all()
        assert np.array_equal(before.held_out, after.held_out)
    assert np.array_equal(given.public, with_public(whole, 0.25, seed=1).public)
    with refused(match=r"public = 0.001: no client has so many graphs that it gives one"):
        with_public(whole, 0.001, seed=1)


def test_partitions_that_the_datasets_cannot_have_are_refused(labelled):
    for options, counts, message in (
        (Iid(), [[50], [50]], "use partition 'per-dataset'"),
        (Chunks(clients=40), [[30]], "40 clients cannot share 30 examples"),
        (Iid(clients=10), [[15, 15]], "client-00 has 3 examples, too few"),
    ):
        with refused(match=message):
            make(options, [labelled(each) for each in counts])
    sizes = describe(make(Iid(clients=3), [labelled([50, 50])]), [labelled([50, 50])]).sizes
    assert sizes.sum(axis=1).tolist() == [34, 33, 33]
