"""Figures of a partition."""

import pytest

from fedmpi.partition.options import DirichletLabel
from fedmpi.partition.partition import Partition, make
from fedmpi.partition.table import COLUMNS, describe
from tests.making import client


def last_two_held_out(name, graphs, dataset=0):
    """A client that trains on all but the last two of its graphs."""
    *train, val, test = graphs
    return client(train, [val], [test], name=name, dataset=dataset)


@pytest.fixture
def table(labelled):
    # six graphs of class 0, four of class 1: one client has classes 4:0, the other 2:4
    partition = Partition((last_two_held_out("a", range(4)), last_two_held_out("b", range(4, 10))))
    return describe(partition, [labelled([6, 4])])


def test_emd_of_a_hand_made_case(table):
    # p = (0.6, 0.4); |1 - 0.6| + |0 - 0.4| = 0.8; |1/3 - 0.6| + |2/3 - 0.4| = 8/15
    assert table.emd == pytest.approx([0.8, 8 / 15])
    assert table.total_emd == pytest.approx(0.4 * 0.8 + 0.6 * 8 / 15)


@pytest.mark.parametrize("seed", range(20))
def test_emd_is_added_in_the_clients_order_on_any_processor(labelled, seed):
    raws = [labelled([170, 250, 260])]
    table = describe(make(DirichletLabel(clients=12, alpha=1, seed=seed), raws), raws)
    total = 0.0
    for held, emd in zip(table.class_counts.sum(axis=1).tolist(), table.emd.tolist(), strict=True):
        total += held * emd
    assert table.total_emd == total / 680


def test_stored_arrays_give_the_indices_back(table):
    arrays = table.arrays()
    assert arrays["train_ptr"].tolist() == [0, 2, 6]
    assert arrays["train_index"].tolist() == [0, 1, 4, 5, 6, 7]
    assert arrays["val_index"].tolist() == [2, 8]
    assert arrays["test_index"].tolist() == [3, 9]
    assert arrays["clients"].tolist() == ["a", "b"]
    assert arrays["total_emd"].shape == ()


def test_several_datasets_compare_class_indices(labelled):
    raws = [labelled([4], "ONE"), labelled([2, 2], "TWO")]
    partition = Partition(
        (last_two_held_out("ONE", range(4)), last_two_held_out("TWO", [0, 2, 1, 3], dataset=1))
    )
    table = describe(partition, raws)
    assert table.class_counts.tolist() == [[4, 0], [2, 2]]
    assert table.num_classes.tolist() == [1, 2]
    assert table.missing_classes.tolist() == [0, 0]
    assert table.emd == pytest.approx([0.5, 0.5])
    assert table.rows()[0][5] == "100"


def test_sizes_classes_and_rows(table, labelled):
    assert table.sizes.tolist() == [[2, 1, 1], [4, 1, 1]]
    assert (table.class_counts.tolist(), table.missing_classes.tolist()) == ([[4, 0], [2, 4]], [1, 0])
    first, second = table.rows()
    assert first == ("a", "TOY", "2", "1", "1", "100 0", "1", "yes", "0.8000")
    assert len(first) == len(second) == len(COLUMNS)
    (row,) = describe(Partition((last_two_held_out("a", range(40)),)), [labelled([2] * 20)]).rows()
    assert row[5] == " ".join(["5"] * 15) + " ..."  # of many classes the first shares are named
