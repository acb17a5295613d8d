"""Data of one's own, from a file to a report."""

import pytest

from fedmpi.store.reader import load_run
from tests.cli.refusals import refused
from tests.started import sets

RINGS = [f"C1{'C' * (n // 3 + 1)}C1{'NOS'[n % 3]}" for n in range(36)]
"""Rings of twelve sizes, with one of three atoms beside them."""


@pytest.fixture
def table(tmp_path):
    """Write 36 molecules of two clients, of which the sulfur compounds are toxic."""
    pytest.importorskip("rdkit", reason="the extra molecules is not installed")
    rows = [f"{text},{'toxic' if 'S' in text else 'safe'},{'xy'[n % 2]}" for n, text in enumerate(RINGS)]
    (tmp_path / "mine.csv").write_text("\n".join(["smiles,label,client", "c1cc,safe,x", *rows]) + "\n")
    return tmp_path


SUITE = """
name = "mine"
[case]
dataset = "./mine.csv"
partition = { name = "given", clients = 2 }
rounds = 2
"""


def run(fedmpi, *settings, code=0):
    return fedmpi("run", "suite.toml", "--out", "runs", "--data", "data", *sets(*settings), code=code)


def test_a_table_of_molecules_is_trained_on(fedmpi, table):
    (table / "suite.toml").write_text(SUITE)
    said = run(fedmpi).stdout
    assert "./mine.csv: 1 rows of its file are left out" in said
    record = load_run(table / "runs" / "case")
    assert record.partition["clients"].tolist() == ["x", "y"]
    assert record.partition["refused"].tolist() == ["row 1: no molecule: c1cc"]
    assert record.partition["test_twin_own"].size == record.partition["test_twin_other"].size == 4
    assert "has the digest noted" in fedmpi("data", "verify", "./mine.csv", "--data", "data", code=0).stdout


def test_classes_of_molecules_are_split_by_scaffold(fedmpi, table):
    (table / "suite.toml").write_text(SUITE.replace('"given"', '"fedgraphnn", split = "scaffold"'))
    assert run(fedmpi, "partition.alpha=5").stdout


def test_a_wrong_table_is_refused_before_a_run(fedmpi, table):
    (table / "suite.toml").write_text(SUITE)
    for text, words in (("smiles,y\nC,1\n", "no column 'label'"), ("smiles,label\nC,inf\n", "infinite")):
        (table / "mine.csv").write_text(text)
        refused(run(fedmpi, code=2), words)
    (table / "mine.csv").unlink()
    refused(run(fedmpi, code=2), "no file ")
    assert sorted(path.name for path in table.iterdir()) == ["suite.toml"]
