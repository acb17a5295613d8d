"""The real TU archives: totals as measured with PyTorch Geometric, and the digests of the table."""

from __future__ import annotations

import numpy as np
import pytest

from fedmpi.datasets.raw import digest, largest_degree
from fedmpi.datasets.tables import GROUPS, KNOWN
from fedmpi.datasets.tu import read_archive

TOTALS = {
    # graphs, nodes, directed edges, classes, label width, attribute width
    "MUTAG": (188, 3371, 7442, 2, 7, 0),
    "PTC_MR": (344, 4915, 10108, 2, 18, 0),
    "BZR": (405, 14479, 31070, 2, 53, 3),
    "COX2": (467, 19252, 40578, 2, 35, 3),
    "DHFR": (756, 32075, 67352, 2, 53, 3),
    "ENZYMES": (600, 19580, 74564, 6, 3, 18),
    "PROTEINS": (1113, 43471, 162088, 2, 3, 1),
    "IMDB-BINARY": (1000, 19773, 193062, 2, 0, 0),
    "IMDB-MULTI": (1500, 19502, 197806, 3, 0, 0),
    "NCI1": (4110, 122747, 265506, 2, 37, 0),
    "AIDS": (2000, 31385, 64780, 2, 38, 4),
    "Letter-low": (2250, 10522, 14092, 15, 0, 2),
    "Letter-med": (2250, 10518, 14426, 15, 0, 2),
    "Letter-high": (2250, 10507, 20250, 15, 0, 2),
    "MSRC_21": (563, 43644, 223312, 20, 24, 0),
    "DD": (1178, 334925, 1686092, 2, 89, 0),
    "COLLAB": (5000, 372474, 24572158, 3, 0, 0),
}


@pytest.mark.parametrize("name", TOTALS)
def test_totals_and_digest(mirror, name):
    raw = read_archive(mirror / "tudataset" / f"{name}.zip", name, name)
    found = (
        raw.num_graphs,
        raw.topology.num_nodes,
        raw.topology.num_edges,
        raw.num_classes,
        sum(raw.label_widths),
        raw.attribute_width,
    )
    assert found == TOTALS[name]
    assert digest(raw) == KNOWN[name].digest
    assert largest_degree(raw) == KNOWN[name].degree_max


@pytest.mark.parametrize("name", TOTALS)
def test_table_agrees_with_the_totals(name):
    facts = KNOWN[name]
    assert TOTALS[name] == (
        facts.graphs,
        facts.nodes,
        facts.directed_edges,
        facts.classes,
        facts.label_width,
        facts.attribute_width,
    )


def test_degree_maxima_are_those_of_gcfl():
    maxima = {name: KNOWN[name].degree_max for name in ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")}
    assert maxima == {"COLLAB": 491, "IMDB-BINARY": 135, "IMDB-MULTI": 88}


def test_classes_follow_the_sorted_order_of_the_file(mirror):
    raw = read_archive(mirror / "tudataset" / "MUTAG.zip", "MUTAG", "MUTAG")
    assert raw.class_names == ("-1", "1")
    assert np.bincount(raw.labels).tolist() == [63, 125]


def test_groups_of_gcfl():
    gcfl = [members for name, members in GROUPS.items() if name.startswith("gcfl/")]
    assert [len(members) for members in gcfl] == [7, 10, 13, 8]
    assert GROUPS["gcfl/small"] == ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "ENZYMES", "DD", "PROTEINS")
    assert GROUPS["gcfl/mix"][-3:] == ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")


def test_groups_of_fedstar_and_fedcch():
    def sizes(paper):
        return {
            name.split("/")[1]: len(members) for name, members in GROUPS.items() if name.startswith(paper)
        }

    assert sizes("fedstar/") == {"chem": 7, "biochem": 10, "biochemsn": 13, "biosncv": 9}
    fedcch = {"chem": 7, "bio-chem": 9, "mix": 12, "bio-sn-cv": 8, "bio-cv": 5, "all": 15}
    assert sizes("fedcch/") == fedcch
    assert not any("PROTEINS" in GROUPS[f"fedcch/{name}"] for name in fedcch)
    assert len(set(GROUPS["fedcch/all"])) == 15


def test_letters_have_their_coordinates_as_features():
    assert (KNOWN["Letter-low"].label_width, KNOWN["Letter-low"].attribute_width) == (0, 2)
