"""Table 5: sizes of datasets, counted from the graphs."""

from __future__ import annotations

import pytest

from fedmpi.heterogeneity.statistics import statistics


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
