"""Anonymous walks: patterns, the bound, and sampled distributions against exact enumeration."""

from fractions import Fraction

import numpy as np
import pytest

from fedmpi.heterogeneity.walks import embed, num_walks, patterns

PATH = (3, [(0, 1), (1, 2)])
PAW_AND_LONELY = (5, [(0, 1), (1, 2), (0, 2), (2, 3)])
EMPTY = (2, [])
KITE = (6, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)])


def exact(graph, length):
    """Return the chance of each pattern by following every walk of a small graph."""
    size, edges = graph
    neighbours = {node: [] for node in range(size)}
    for one, other in edges:
        neighbours[one].append(other)
        neighbours[other].append(one)
    starts = [node for node in neighbours if neighbours[node]]
    walks = {(node,): Fraction(1, len(starts)) for node in starts}
    for _ in range(length):
        walks = {
            (*walk, node): chance / len(neighbours[walk[-1]])
            for walk, chance in walks.items()
            for node in neighbours[walk[-1]]
        }
    chances = {}
    for walk, chance in walks.items():
        seen = list(dict.fromkeys(walk))
        pattern = tuple(seen.index(node) for node in walk)
        chances[pattern] = chances.get(pattern, 0) + chance
    return [float(chances.get(tuple(pattern), 0)) for pattern in patterns(length).tolist()]


def test_patterns_of_three_steps():
    assert patterns(3).tolist() == [[0, 1, 0, 1], [0, 1, 0, 2], [0, 1, 2, 0], [0, 1, 2, 1], [0, 1, 2, 3]]


@pytest.mark.parametrize(("length", "number"), [(2, 2), (4, 15), (5, 52), (6, 203)])
def test_the_number_of_patterns_is_a_bell_number(length, number):
    assert len(patterns(length)) == number


def test_the_bound_on_the_number_of_walks():
    assert num_walks(877, epsilon=0.5, delta=0.05) == 4888  # the example of Ivanov and Burnaev
    assert num_walks(15) == 3001
    assert num_walks(52) == 8130


def test_walks_of_two_steps_on_a_path_by_hand(packed):
    # from an end (chance 2/3): back or on, half each; from the middle (1/3): always back
    assert exact(PATH, 2) == pytest.approx([2 / 3, 1 / 3])
    np.testing.assert_allclose(embed(packed(PATH), 2, walks=200_000)[0], [2 / 3, 1 / 3], atol=0.005)


@pytest.mark.parametrize("length", [3, 4, 5])
def test_sampled_walks_agree_with_enumeration(packed, length):
    found = embed(packed(PATH, PAW_AND_LONELY, KITE), length, seed=3, walks=200_000)
    for row, graph in zip(found, (PATH, PAW_AND_LONELY, KITE), strict=True):
        np.testing.assert_allclose(row, exact(graph, length), atol=0.005)  # over four standard deviations


def test_the_default_number_of_walks_keeps_the_bound(packed):
    rows = embed(packed(*[KITE] * 300), 4)
    errors = abs(rows - exact(KITE, 4)).sum(axis=1)
    assert (errors < 0.1).mean() >= 0.99


def test_a_graph_without_edges_has_no_walks(packed):
    rows = embed(packed(EMPTY, KITE), 4)
    assert np.isnan(rows[0]).all()
    assert rows[1].sum() == pytest.approx(1)


def test_a_row_does_not_depend_on_the_other_graphs(packed):
    small, large = packed(KITE, PATH), packed(*[KITE] * 700, PATH)  # more than are walked at once
    assert (embed(small, 4, seed=9)[0] == embed(large, 4, seed=9)[0]).all()
    assert (embed(small, 4, seed=9)[0] != embed(small, 4, seed=10)[0]).any()
