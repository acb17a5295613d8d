"""Clients of a population: who is sampled, what each holds, and what no client holds."""

import numpy as np
import pytest

from fedmpi.heterogeneity.leakage import leakage
from fedmpi.partition.options import PopulationOptions
from fedmpi.partition.partition import make
from fedmpi.partition.population import Population
from tests.refusals import refused

POOL = np.arange(100, 180)
CLASSES = (np.arange(0, 60), np.arange(60, 80))


def population(size=1_000_000, graphs=12, alpha=None):
    return Population(size, graphs, alpha, 123, POOL, CLASSES)


@pytest.mark.parametrize("size", [1_000_000, 1000, 500, 400])
def test_a_round_samples_different_clients_and_every_round_others(size):
    rounds = [population(size).sampled(7, round, 400) for round in range(3)]
    for found in rounds:
        assert (len(found), found.dtype) == (400, np.int64)
        assert found[0] >= 0 and found[-1] < size and (np.diff(found) > 0).all()
    assert (size == 400) == np.array_equal(rounds[0], rounds[1])
    assert np.array_equal(rounds[2], population(size).sampled(7, 2, 400))
    assert (size == 400) == np.array_equal(rounds[2], population(size).sampled(8, 2, 400))


def test_all_clients_are_sampled_alike_often():
    counts = np.zeros(50)
    for round in range(2000):
        counts[population(50).sampled(1, round, 5)] += 1
    assert abs(counts - 200).max() < 5 * np.sqrt(200 * 0.9)


def test_a_clients_graphs_depend_on_its_number_alone():
    first, second = population().drawn(999_999), population(size=2_000_000).drawn(999_999)
    assert np.array_equal(first, second)
    assert len(first) == 12 and first.min() >= 0 and first.max() < 80
    assert not np.array_equal(first, population().drawn(999_998))


@pytest.mark.parametrize("alpha, pure, share", [(None, 0.05, 0.25), (0.05, 0.85, 0.25), (1000.0, 0.05, 0.25)])
def test_a_small_alpha_gives_clients_of_one_class_and_the_same_classes_in_all(alpha, pure, share):
    second = np.array([(population(alpha=alpha).drawn(client) >= 60).sum() for client in range(2000)])
    assert abs(second.mean() / 12 - share) < 0.04
    one_class = np.mean((second == 0) | (second == 12))
    assert one_class > pure if alpha == 0.05 else one_class < pure


def options(**given):
    return PopulationOptions(name="population", clients=5, graphs=6, **given)


def test_held_out_graphs_are_dealt_to_the_places_and_no_client_trains_on_them(labelled):
    raw = labelled([100, 100])
    made = make(options(population=1000), [raw])
    held = np.concatenate([np.concatenate([place.val, place.test]) for place in made.clients])
    assert len(held) == len(np.unique(held)) == 40
    assert not np.isin(made.population.pool, held).any()
    assert len(made.population.pool) == 160
    assert [place.name for place in made.clients] == [f"place-0{number}" for number in range(5)]
    for client, place in enumerate(made.clients):
        assert np.array_equal(place.train, made.population.pool[made.population.drawn(client)])
        assert (len(place.train), len(place.val), len(place.test)) == (6, 4, 4)


def test_twins_are_looked_for_in_all_that_clients_can_draw(labelled):
    raw = labelled([100, 100])  # graphs that are all alike
    made = make(options(population=1000), [raw])
    found = leakage(made.trained, [raw]).clients[:5]
    assert all(place.other.all() and not place.own.any() for place in found)


def test_fewer_held_out_graphs_than_places_are_refused(labelled):
    with refused(match="5 clients a round cannot share 4 held-out graphs"):
        make(options(population=1000), [labelled([20, 20])])
