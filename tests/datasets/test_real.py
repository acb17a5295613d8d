"""The real datasets: sizes as measured, or as their papers print them, and the digests of the tables."""

import zipfile
from dataclasses import astuple

import numpy as np
import pytest

from fedmpi.datasets.names import family_of
from fedmpi.datasets.raw import digest, largest_degree
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tables import GROUPS, KNOWN
from fedmpi.datasets.tu import read_archive
from fedmpi.datasets.tu_folders import read_folder


@pytest.mark.parametrize("name", KNOWN)
def test_archives_have_the_sizes_and_the_digest_of_the_table(mirror, name):
    raw = read_archive(mirror / "tudataset" / f"{name}.zip", name, name)
    assert astuple(KNOWN[name]) == (
        *(name, raw.num_graphs, raw.num_classes, sum(raw.label_widths), raw.attribute_width),
        *(largest_degree(raw), raw.topology.num_nodes, raw.topology.num_edges),
    )
    assert digest(raw) == family_of(name).digest(name)
    if name == "MUTAG":  # classes follow the sorted order of the file
        assert (raw.class_names, np.bincount(raw.labels).tolist()) == (("-1", "1"), [63, 125])


def test_a_folder_without_bonds_has_the_digest_of_its_archive(mirror, tmp_path):
    zipfile.ZipFile(mirror / "tudataset" / "MUTAG.zip").extractall(tmp_path)
    (tmp_path / "MUTAG" / "MUTAG_edge_labels.txt").unlink()
    assert digest(read_folder(tmp_path / "MUTAG", "MUTAG", "MUTAG")) == family_of("MUTAG").digest("MUTAG")


NETWORKS = {
    # graphs, nodes, directed edges, features, classes
    "Cora": (1, 2708, 10556, 1433, 7),
    "CiteSeer": (1, 3327, 9104, 3703, 6),
    "CitationFull-Cora_ML": (1, 2995, 16316, 2879, 7),
    "CitationFull-CiteSeer": (1, 4230, 10674, 602, 6),
    "CitationFull-DBLP": (1, 17716, 105734, 1639, 4),
    "Coauthor-CS": (1, 18333, 163788, 6805, 15),
    "Coauthor-Physics": (1, 34493, 495924, 8415, 5),
    "Ciao": (28, 144226, 539866, 0, 1),
    "Epinions": (27, 427254, 1793354, 0, 1),
    "FB15k-237": (1, 14541, 421892, 0, 237),
    "WN18RR": (1, 40943, 143664, 0, 11),
}
PARTS = {
    # in none and no other, training, validation, test
    "Cora": [0, 1068, 140, 500, 1000],
    "CiteSeer": [0, 1707, 120, 500, 1000],
    "FB15k-237": [0, 0, 272115, 17535, 20466],
    "WN18RR": [0, 0, 86835, 3034, 3134],
}
PAPER = {
    # of FedGraphNN: mean nodes and edges of a category; entities and pairs of the training triples
    "Ciao": (5150.93, 19280.93),
    "Epinions": (15824.22, 66420.52),
    "FB15k-237": (14505, 212110),
    "WN18RR": (40559, 71839),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_the_sizes_of_the_paper(real_data, tmp_path, name):
    source, family = DataSource.from_environment(tmp_path, offline=True), family_of(name)
    source.check(name)
    source.prepare(name)
    raw = source.load(name)
    sizes = (raw.num_graphs, raw.topology.num_nodes, raw.topology.num_edges)
    assert (*sizes, raw.attribute_width, raw.num_classes) == NETWORKS[name]
    assert largest_degree(raw) == family.degree_max(name)
    assert source.verify(name) == (family.digest(name) or digest(raw))
    assert (name in PARTS) == (raw.parts is not None)
    if raw.parts is not None:
        assert np.bincount(np.asarray(raw.parts) + 2, minlength=5).tolist() == PARTS[name]
    if family.name in ("citation-full", "coauthor"):
        assert set(np.asarray(raw.node_attributes.values)) == {1}
        assert len(raw.labels) == len(raw.places) == sizes[1]
    if family.name == "knowledge-graph":  # with the self-loops that we remove
        training = np.asarray(raw.places)[np.asarray(raw.parts) == 0]
        loops = np.unique(training[training[:, 0] == training[:, 1], 0])
        assert (len(np.unique(training)), raw.topology.num_edges // 2 + len(loops)) == PAPER[name]
    if family.name == "recommender":
        assert len(raw.labels) == sizes[2] / 2
        assert tuple(np.round(np.array(sizes[1:3]) / sizes[0], 2).tolist()) == PAPER[name]
        graph_of = np.searchsorted(raw.topology.graph_ptr, raw.places, side="right") - 1
        assert (graph_of[:, 0] == graph_of[:, 1]).all() and (np.diff(graph_of[:, 0]) >= 0).all()


def test_groups_of_gcfl():
    gcfl = [members for name, members in GROUPS.items() if name.startswith("gcfl/")]
    assert [len(members) for members in gcfl] == [7, 10, 13, 8]
    assert GROUPS["gcfl/small"] == ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "ENZYMES", "DD", "PROTEINS")
    assert GROUPS["gcfl/mix"][-3:] == ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")


def test_groups_of_fedstar_and_fedcch():
    def sizes(paper):
        return {name.split("/")[1]: len(GROUPS[name]) for name in GROUPS if name.startswith(paper)}

    assert sizes("fedstar/") == {"chem": 7, "biochem": 10, "biochemsn": 13, "biosncv": 9}
    fedcch = {"chem": 7, "bio-chem": 9, "mix": 12, "bio-sn-cv": 8, "bio-cv": 5, "all": 15}
    assert sizes("fedcch/") == fedcch
    assert not any("PROTEINS" in GROUPS[f"fedcch/{name}"] for name in fedcch)
    assert len(set(GROUPS["fedcch/all"])) == 15
