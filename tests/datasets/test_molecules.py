"""Molecules from MoleculeNet's tables."""

import gzip
import math
from dataclasses import replace

import numpy as np
import pytest

from fedmpi.datasets import cache, smiles
from fedmpi.datasets.atoms import ATOM_COLUMNS, one_hot_atoms, standardised_by_graph
from fedmpi.datasets.families.moleculenet import MOLECULES
from fedmpi.datasets.features import build, feature_width
from fedmpi.datasets.raw import digest, strata
from fedmpi.datasets.source import DataSource
from tests.making import labelled, without_edges
from tests.refusals import refused

ETHANOL, ACETATE, BENZENE = "CCO", "CC(=O)[O-]", "c1ccccc1"


@pytest.fixture
def esol(tmp_path):
    """Return a function that reads rows of (label, SMILES) as ESOL."""
    pytest.importorskip("rdkit", reason="the extra molecules is not installed")

    def read(*rows):
        path = tmp_path / "mirror" / "moleculenet" / "delaney-processed.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{label},{text}" for label, text in rows]
        path.write_text("\n".join(["measured log solubility in mols per litre,smiles", *lines]) + "\n")
        return smiles.read_molecules(path, small("ESOL", len(rows)))

    return read


def small(name, rows):
    """Facts of a set that has so many rows, of any content."""
    return replace(MOLECULES[name], rows=rows, digest="")


def test_atoms_are_eight_numbers_and_bonds_edges_in_both_directions(esol):
    raw = esol((0, BENZENE), (-0.5, ACETATE), (0, ETHANOL), (1, "Cc1ccccc1"))
    assert (raw.attribute_names, raw.task, raw.labels[1].tolist()) == (ATOM_COLUMNS, "regression", [-0.5])
    carbons = [[6, 0, 1, 0, 3, 0.12011, 0, 3], [6, 0, 3, 0, 0, 0.12011, 0, 2]]
    expected = [*carbons, [8, 0, 1, 0, 0, 0.15999, 0, 2], [8, -1, 1, 0, 0, 0.15999, 0, 2]]
    np.testing.assert_allclose(raw.node_attributes[6:10], expected, rtol=1e-6)
    part = raw.topology.take(np.array([2, 1]))
    assert part.graph_ptr.tolist() == [0, 3, 7]
    assert part.row_ptr.tolist() == [0, 1, 3, 4, 5, 8, 9, 10]
    assert part.columns.tolist() == [1, 0, 2, 1, 4, 3, 5, 6, 4, 4]
    assert raw.edge_attributes[:12].tolist() == [[0, 0, 0, 1, 1, 1]] * 12
    # of atom 1 of the acetate: to the methyl, the oxygen, the charged oxygen
    assert raw.edge_attributes[13:16].tolist() == [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 1, 0]]
    assert raw.scaffolds.tolist() == [0, 1, 1, 0]  # in the order in which they appear


def test_what_is_no_molecule_or_has_no_label_is_named(esol):
    raw = esol((1, ETHANOL), (2, "c1ccc"), ("", BENZENE), (3, BENZENE))
    assert raw.num_graphs == 2
    assert raw.refused == ("row 2: no molecule: c1ccc", "row 3: no label: c1ccccc1")
    with refused(match=r"row 2, column 'measured log solubility.*': 'high' is no number"):
        esol((1, ETHANOL), ("high", ETHANOL))


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "SAMPL.csv"
    path.write_text("smiles,calc\nC,1\n")
    with refused(match="no column 'expt': not the MoleculeNet file of FreeSolv"):
        smiles.check_table(path, MOLECULES["FreeSolv"])


def test_a_file_cut_short_is_named(tmp_path):
    pytest.importorskip("rdkit", reason="the extra molecules is not installed")
    path = tmp_path / "sider.csv.gz"
    path.write_bytes(gzip.compress(b"smiles,a\nC,1\n" * 1000)[:-20])
    with refused(match="cut short or damaged"):
        smiles.read_molecules(path, MOLECULES["SIDER"])


def test_a_file_of_another_length_or_content_is_refused(fedmpi, esol, tmp_path):
    esol((1, ETHANOL), (3, BENZENE))
    places = ("--mirror", tmp_path / "mirror", "--data", tmp_path / "data")
    done = fedmpi("data", "fetch", "ESOL", *places)
    assert done.returncode == 2
    assert "has 2 rows, ESOL has 1128: it is cut short or another file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    words = r"ESOL has content digest [0-9a-f]{64}, expected cc241ae8.*: these are other data under that name"
    with refused(match=words):
        path = tmp_path / "mirror" / "moleculenet" / "delaney-processed.csv"
        smiles.read_molecules(path, replace(MOLECULES["ESOL"], rows=2))


def test_the_digest_of_a_table_is_of_molecules_and_labels_alone():
    known = smiles.table_digest(["CCO", "C"], np.array([[0.0, 1.0], [math.nan, 2.0]]))
    assert smiles.table_digest(["CCO ", "C"], np.array([[-0.0, 1.0], [-math.nan, 2.0]])) == known
    assert smiles.table_digest(["C", "CCO"], np.array([[0.0, 1.0], [math.nan, 2.0]])) != known
    assert smiles.table_digest(["CCO", "C"], np.array([[0.0, 1.0], [0.0, 2.0]])) != known


def test_a_set_prepared_from_a_cut_file_does_not_verify(esol, tmp_path):
    cache.save(esol((1, ETHANOL), (3, BENZENE)), tmp_path / "moleculenet" / "ESOL", "test")
    with refused("ESOL was prepared from 2 rows, it has 1128"):
        DataSource(tmp_path).verify("ESOL")


def test_without_rdkit_one_line_says_so(monkeypatch, esol):
    monkeypatch.setattr(smiles.importlib.util, "find_spec", lambda name: None)
    with refused(match=r"RDKit, which is missing: pip install 'fedmpi\[molecules\]'"):
        esol((1, ETHANOL))


def test_one_hot_is_table_5():
    scalars = np.array([[6, -1, 3, 1, 0, 0.12, 1, 2], [101, 4, 9, 0, 7, 2.5, 0, 0]], np.float32)
    rows = one_hot_atoms(scalars)
    assert rows.shape == (2, 128)
    assert np.flatnonzero(rows[0]).tolist() == [5, 101, 108, 112, 116, 121, 122, 124]
    assert np.flatnonzero(rows[1]).tolist() == [111, 121]
    assert rows[0, 121] == np.float32(0.12)


def test_features_of_molecules(esol):
    raw = esol((0, ETHANOL))
    graphs = np.array([0])
    assert feature_width(raw, "original") == feature_width(raw, "scalar8") == 8
    assert feature_width(raw, "onehot") == build(raw, graphs, "onehot").features.shape[1] == 128
    np.testing.assert_array_equal(build(raw, graphs, "scalar8").features, raw.node_attributes)
    shares = build(raw, graphs, "scalar8", scaling="row-sum").features
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    blank = replace(raw, node_attributes=np.zeros((3, 8), np.float32))  # rows of sum 0 stay as they are
    assert not build(blank, graphs, "scalar8", scaling="row-sum").features.any()


def made(labels, task):
    """Return graphs of one node each with these labels."""
    return labelled(without_edges(*[1] * len(labels)), labels, "ab"[: labels.shape[1]], task=task)


def test_strata_of_several_labels_put_the_rarest_first_and_those_of_a_number_are_tenths():
    found, count = strata(made(np.array([[1, 0], [1, 1], [1, math.nan], [math.nan, 0]]), "multi-task"))
    assert (found.tolist(), count) == ([1, 2, 1, 0], 3)
    found, count = strata(made(np.arange(20.0)[::-1, None], "regression"))
    assert (np.bincount(found).tolist(), count, found[0]) == ([2] * 10, 10, 9)


def test_scaling_per_graph_is_within_each_graph():
    rows = np.array([[0, 5], [2, 5], [1, 1], [1, 3]], np.float32)
    scaled = standardised_by_graph(rows, np.array([0, 2, 4]))
    assert scaled.tolist() == [[-1, 0], [1, 0], [0, -1], [0, 1]]


def test_chosen_graphs_keep_their_bonds(esol):
    raw = esol((0, ETHANOL), (1, BENZENE), (2, ACETATE))
    part = build(raw, np.array([2, 1]), "scalar8").take(np.array([1]))
    assert part.edges.tolist() == [[0, 0, 0, 1, 1, 1]] * 12
    assert part.labels.tolist() == [[1]]


def test_atom_features_of_a_dataset_without_smiles_are_refused():
    with refused("'scalar8' are those of molecules read from SMILES"):
        feature_width(made(np.zeros((1, 1)), "regression"), "scalar8")


def test_the_prepared_set_is_what_was_read(esol, tmp_path, monkeypatch):
    monkeypatch.setitem(MOLECULES, "ESOL", small("ESOL", 3))
    raw = esol((1, ETHANOL), (2, "c1ccc"), (3, BENZENE))
    source = DataSource(tmp_path / "data", tmp_path / "mirror")
    source.prepare("ESOL")
    found = source.load("ESOL")
    assert digest(found) == digest(raw) == source.verify("ESOL")
    assert found.refused == raw.refused == source.refused_of("ESOL")
    assert (found.task, found.class_names, found.attribute_names) == (raw.task, raw.class_names, ATOM_COLUMNS)


@pytest.mark.parametrize(
    ("name", "graphs", "nodes", "bonds", "refused"),
    [
        ("SIDER", 1427, 33.64, 35.36, 0),
        ("BACE", 1513, 34.09, 36.86, 0),
        ("ESOL", 1128, 13.29, 13.68, 0),
        ("FreeSolv", 642, 8.72, 8.39, 0),
    ],
)
def test_real_sets(mirror, name, graphs, nodes, bonds, refused):
    """Table 1 of FedGraphNN; its edges for regression are non-zeros of A + I: 40.65 and 25.6 there."""
    pytest.importorskip("rdkit", reason="the extra molecules is not installed")
    path = mirror / "moleculenet" / MOLECULES[name].file
    if not path.is_file():
        pytest.skip(f"{path} is not at hand")
    raw = smiles.read_molecules(path, MOLECULES[name])
    counts = raw.topology.num_nodes / graphs, raw.topology.num_edges / 2 / graphs
    assert raw.num_graphs == graphs
    assert (round(counts[0], 2), round(counts[1], 2), len(raw.refused)) == (nodes, bonds, refused)
