"""Table 1: properties of graphs, their random counterparts, and the paired test; Table 5: sizes."""

import numpy as np
import pytest

from fedmpi.heterogeneity.properties import compare, measure, random_counterparts, statistics
from fedmpi.heterogeneity.structure import adjacency

TRIANGLE = (3, [(0, 1), (1, 2), (0, 2)])
STAR = (4, [(0, 1), (0, 2), (0, 3)])
PAW_AND_EDGE = (6, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)])
LONELY = (1, [])


def test_properties_of_graphs_worked_out_by_hand(packed):
    found = measure(packed(TRIANGLE, STAR, PAW_AND_EDGE, LONELY))
    # star: degrees 3 1 1 1, second and fourth moments 0.75 and 1.3125
    degrees = np.array([2, 2, 3, 1, 1, 1]) - 10 / 6
    third = np.mean(degrees**4) / np.mean(degrees**2) ** 2
    np.testing.assert_allclose(found.kurtosis, [np.nan, 1.3125 / 0.5625, third, np.nan])
    np.testing.assert_allclose(found.path_length, [1, 9 / 6, 8 / 6, np.nan])
    np.testing.assert_allclose(found.largest_component, [100, 100, 400 / 6, 100])
    np.testing.assert_allclose(found.clustering, [1, 0, (1 + 1 + 1 / 3) / 6, 0])


def test_directions_of_edges_do_not_matter(packed):
    both = packed(STAR)
    one_way = type(both)(both.graph_ptr, np.array([0, 3, 3, 3, 3]), np.array([1, 2, 3]))
    assert measure(one_way).path_length == measure(both).path_length == 1.5


def test_random_counterparts_have_the_same_numbers_of_nodes_and_edges(packed):
    graphs = packed(*[PAW_AND_EDGE] * 200, STAR, LONELY, TRIANGLE)
    drawn = random_counterparts(graphs, seed=5)
    assert drawn.graph_ptr.tolist() == graphs.graph_ptr.tolist()
    degrees = np.diff(drawn.row_ptr)
    edges = [degrees[a:b].sum() // 2 for a, b in zip(drawn.graph_ptr[:-1], drawn.graph_ptr[1:], strict=True)]
    assert edges == [5] * 200 + [3, 0, 3]
    assert adjacency(drawn).trace() == 0
    owner = np.repeat(np.arange(203), np.diff(drawn.graph_ptr))
    assert (owner[drawn.columns] == np.repeat(owner, degrees)).all()


def test_every_pair_of_nodes_is_linked_equally_often(packed):
    drawn = random_counterparts(packed(*[(4, [(0, 1), (2, 3)])] * 3000), seed=1)
    matrix = sum(adjacency(drawn)[4 * g : 4 * g + 4, 4 * g : 4 * g + 4] for g in range(3000)).toarray()
    pairs = matrix[np.triu_indices(4, 1)]
    assert pairs.sum() == 6000
    assert abs(pairs - 1000).max() < 110  # four standard deviations


def test_the_other_random_model_keeps_edges_on_average_only(packed):
    drawn = random_counterparts(packed(*[PAW_AND_EDGE] * 1000), seed=5, exact_edges=False)
    edges = np.diff(drawn.row_ptr[drawn.graph_ptr]) / 2
    assert edges.std() == pytest.approx(np.sqrt(15 * (1 / 3) * (2 / 3)), rel=0.1)
    assert edges.mean() == pytest.approx(5, abs=0.25)


def test_the_p_values_say_which_side_is_larger(packed, labelled):
    rows = {row.property: row for row in compare(labelled(packed(*[PAW_AND_EDGE] * 60)), seed=2)}
    clustering = rows["clustering"]
    assert clustering.real == pytest.approx(7 / 18)
    assert clustering.greater < 1e-3 < 0.99 < clustering.less
    assert clustering.two_sided == pytest.approx(2 * clustering.greater)


def test_where_no_graph_differs_the_test_says_nothing(packed, labelled):
    rows = {row.property: row for row in compare(labelled(packed(TRIANGLE, TRIANGLE)), seed=0)}
    assert (rows["clustering"].greater, rows["clustering"].less, rows["clustering"].two_sided) == (1, 1, 1)
    assert np.isnan(rows["kurtosis"].real)
    assert rows["kurtosis"].pairs == 0


def test_table_1_of_ptc_mr(real):
    rows = {row.property: row for row in compare(real("PTC_MR"), seed=0, as_published=True)}
    assert f"{rows['kurtosis'].real:.4f}" == "2.1535"
    assert f"{rows['path_length'].real:.2f}" == "3.36"
    assert rows["largest_component"].real == 100
    assert f"{rows['clustering'].real:.4f}" == "0.0095"
    assert rows["kurtosis"].greater > 0.999
    assert rows["path_length"].random == pytest.approx(2.42, abs=0.02)


def test_an_edge_counts_once(packed, labelled):
    found = statistics(labelled(packed((3, [(0, 1), (1, 2)]), (1, [])), [0, 1, 0, 1]))
    assert (found.graphs, found.nodes, found.edges, found.classes) == (2, 2.0, 1.0, 1)
    assert (found.features, found.feature_width) == ("labels", 2)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("MUTAG", "188 17.93 19.79 2 labels 7"),
        ("COX2", "467 41.22 43.45 2 labels 35"),
        ("DHFR", "756 42.43 44.54 2 labels 53"),  # Table 5 prints COX2's 467 graphs
        ("IMDB-BINARY", "1000 19.77 96.53 2 degree 136"),
        ("IMDB-MULTI", "1500 13.00 65.94 3 degree 89"),
    ],
)
def test_table_5(real, name, line):
    found = statistics(real(name))
    averages = f"{found.nodes:.2f} {found.edges:.2f}"
    assert f"{found.graphs} {averages} {found.classes} {found.features} {found.feature_width}" == line
