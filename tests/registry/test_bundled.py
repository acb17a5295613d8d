"""The suites that come with fedmpi."""

import pytest

from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite


@pytest.mark.parametrize("name", locations.bundled())
def test_every_bundled_suite_is_right(name):
    suite = read(locations.find(name))
    assert suite.name == name
    assert check_suite(suite)


def cases(name):
    return {item.case.name: item.case for item in check_suite(read(locations.find(name)))}


def test_table_3_has_the_published_settings():
    table = cases("gcfl/table3")
    assert len(table) == 3 * 5 * 7
    nci1 = table["seed42-NCI1-gcfl-plus"]
    assert nci1.partition.clients == 30
    assert (nci1.algorithm.eps1, nci1.algorithm.eps2, nci1.algorithm.length) == (0.04, 0.08, 5)
    proteins = table["seed10-PROTEINS-gcfl-plus-dws"].algorithm
    assert (proteins.eps1, proteins.eps2, proteins.length, proteins.sequence) == (0.03, 0.06, 10, "delta")
    assert table["seed10-IMDB-BINARY-self-train-50"].rounds == 50


def test_table_4_has_the_published_settings():
    table = cases("gcfl/table4")
    assert len(table) == 3 * 5 * 7
    mix = table["mix-seed10-gcfl-plus"]
    assert (mix.dataset.name, mix.partition.name) == ("gcfl/mix", "per-dataset")
    assert (mix.algorithm.eps1, mix.algorithm.eps2, mix.algorithm.length) == (0.08, 0.4, 5)
    assert table["molecules-seed10-self-train-100"].rounds == 100
