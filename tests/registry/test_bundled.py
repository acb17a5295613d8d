"""The suites that come with fedmpi."""

import re

import pytest

from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite
from fedmpi.store.schema import config_differences
from tests.suites import cases


@pytest.mark.parametrize("name", locations.bundled())
def test_every_bundled_suite_is_right(name):
    suite = read(locations.find(name))
    assert suite.name == name
    assert check_suite(suite)


def test_table_4_has_the_published_settings():
    table = cases("gcfl/table4")
    assert len(table) == 3 * 5 * 7
    mix = table["mix-seed10-gcfl-plus"]
    assert (mix.dataset.name, mix.partition.name) == ("gcfl/mix", "per-dataset")
    assert (mix.algorithm.eps1, mix.algorithm.eps2, mix.algorithm.length) == (0.08, 0.4, 5)
    assert table["molecules-seed10-self-train-100"].rounds == 100


def test_other_splits_are_table_3_but_for_the_split():
    table, splits = cases("gcfl/table3"), cases("gcfl/splits")
    assert len(splits) == 3 * 5 * 7
    for name in ("NCI1-split3-gcfl-plus", "PROTEINS-split1-self-train-50", "IMDB-BINARY-split5-gcfl"):
        dataset, split, method = re.fullmatch(r"(.+)-split(\d)-(.+)", name).groups()
        ours, published = splits[name], table[f"seed10-{dataset}-{method}"]
        assert ours.partition.seed == int(split)
        assert ours.partition.model_copy(update={"seed": 123}) == published.partition
        assert (ours.algorithm, ours.rounds, ours.seed) == (published.algorithm, published.rounds, 10)


def test_the_ablation_switches_one_setting_at_a_time():
    table, ablation = cases("gcfl/table3"), cases("gcfl/ablation")
    assert len(ablation) == 5 * 2 * 20
    switched = {
        "gcfl-weighted": ["algorithm.criterion: plain -> weighted"],
        "gcfl-sum": ["algorithm.combine: average -> sum"],
        "gcfl-no-warmup": ["algorithm.warmup: 20 -> 0"],
        "gcfl-smallest-1": ["algorithm.smallest: 2 -> 1"],
        "gcfl-share-all": ["share: conv -> all"],
        "gcfl-adam-reset": ["optimizer.state: kept -> reset"],
        "gcfl-plus-update-norms": ["algorithm.sequence: gradient -> delta"],
        "gcfl-plus-sliding": ["algorithm.after_split: cleared -> kept"],
        "gcfl-plus-standardise": ["algorithm.standardise: False -> True"],
        "fedavg-share-all": ["share: conv -> all"],
        "self-train-200-adam-reset": ["optimizer.state: kept -> reset"],
    }
    for dataset in ("PROTEINS", "IMDB-BINARY"):
        for method, lines in switched.items():
            reference = re.match(r"gcfl-plus|gcfl|fedavg|self-train-200", method)[0]
            before = table[f"seed42-{dataset}-{reference}"].config()
            after = ablation[f"seed42-{dataset}-{method}"].config()
            named = {"suite": before["suite"], "name": before["name"]}
            assert config_differences(before, {**after, **named}) == lines
