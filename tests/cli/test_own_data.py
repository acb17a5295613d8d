"""Data of one's own, from a file to a report."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fedmpi.store.reader import load_run
from tests.cli.own_graphs import write_graphs
from tests.cli.refusals import refused
from tests.datasets.ogb_folders import drawn, write
from tests.started import sets
from tests.test_layers import without_torch

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
    assert "./mine.csv: left out of its file: 1; partition/refused names them" in said
    record = load_run(table / "runs" / "case")
    assert record.partition["clients"].tolist() == ["x", "y"]
    assert record.partition["refused"].tolist() == ["row 1: no molecule: c1cc"]
    assert record.partition["test_twin_own"].size == record.partition["test_twin_other"].size == 4
    assert "has the digest noted" in fedmpi("data", "verify", "./mine.csv", "--data", "data", code=0).stdout


def test_molecules_of_weight_0_are_not_trained_on(fedmpi, table):
    """Whatever their labels; reported losses count all examples alike."""
    text = (table / "mine.csv").read_text().splitlines()

    suite = SUITE.replace("clients = 2", 'clients = 2, parts = "dataset"')
    (table / "suite.toml").write_text(suite)

    def trained(label):
        parts = ("train", "train", "val", "test", "test")
        rows = [f"{row},{parts[n % 5]},{1 + n % 3}" for n, row in enumerate(text[1:])]
        rows += [f"CCCC{'C' * n},{label},{'xy'[n % 2]},train,0" for n in range(8)]
        (table / "mine.csv").write_text("\n".join([f"{text[0]},split,weight", *rows]) + "\n")
        fedmpi("run", "suite.toml", "--out", label, "--data", "data", code=0)
        return load_run(table / label / "case")

    one, other = trained("toxic"), trained("safe")
    assert one.config["kernels"] == "csr"
    assert np.array_equal(one.results["parameter_digest"], other.results["parameter_digest"])
    assert not np.array_equal(one.results["train_loss"], other.results["train_loss"])
    refused(run(fedmpi, "algorithm=flit", code=2), "flit weighs labels itself, and these have weights")
    done = run(fedmpi, "kernels=compiled", code=2)
    refused(done, '"compiled" counts all examples alike, and these have weights: use "csr"')


def test_classes_of_molecules_are_split_by_scaffold(fedmpi, table):
    (table / "suite.toml").write_text(SUITE.replace('"given"', '"fedgraphnn", split = "scaffold"'))
    assert run(fedmpi, "partition.alpha=5").stdout


def ring(size, **fields):
    """Return a ring, whose edges have both directions."""
    nodes = torch.arange(size)
    ends = torch.stack([nodes, (nodes + 1) % size])
    return Data(x=torch.ones(size, 2), edge_index=torch.cat([ends, ends.flip(0)], dim=1), **fields)


def test_a_list_of_graphs_is_trained_on(fedmpi, tmp_path):
    torch.save(
        [ring(3 + n % 5, y=n % 2, client=n % 2, pos=torch.ones(2)) for n in range(40)], tmp_path / "mine.pt"
    )
    (tmp_path / "suite.toml").write_text(SUITE)
    run(fedmpi, "dataset=./mine.pt")
    (path,) = (tmp_path / "runs").iterdir()
    assert load_run(path).partition["clients"].tolist() == ["0", "1"]
    assert load_run(path).partition["refused"].tolist() == ["field pos: not read"]


def test_graphs_are_read_without_torch(tmp_path):
    torch.save([ring(3 + n % 5, y=n % 2, client=n % 2) for n in range(40)], tmp_path / "mine.pt")
    (tmp_path / "suite.toml").write_text(SUITE.replace("mine.csv", "mine.pt"))
    without_torch(tmp_path, "run suite.toml --list", "data describe ./mine.pt", "data verify ./mine.pt")


def test_a_folder_of_graphs_is_trained_on_with_its_clients_and_parts(fedmpi, tmp_path):
    folder, numbers = write_graphs(tmp_path, "OWN", [n + 0.5 for n in range(24)]), range(24)
    (folder / "OWN_client.txt").write_text("".join(f"{'xy'[n % 2]}\n" for n in numbers))
    (folder / "OWN_graph_split.txt").write_text(
        "".join(f"{['train', 'val', 'test', ''][n // 2 % 4]}\n" for n in numbers)
    )
    said = fedmpi("data", "describe", "own/OWN", code=0).stdout
    assert "regression of 24 graphs" in said
    assert 'partition = { name = "given", clients = 2, parts = "dataset" }' in said
    (tmp_path / "suite.toml").write_text(SUITE.replace("clients = 2", 'clients = 2, parts = "dataset"'))
    run(fedmpi, "dataset=own/OWN")
    (path,) = (tmp_path / "runs").iterdir()
    assert load_run(path).partition["clients"].tolist() == ["x", "y"]
    assert load_run(path).partition["sizes"].tolist() == [[3, 3, 3], [3, 3, 3]]


def with_bonds(place):
    """Write a folder of 24 graphs whose edges alone tell the classes apart."""
    folder = write_graphs(place, "OWN", [n % 2 for n in range(24)])
    (folder / "OWN_edge_labels.txt").write_text("".join(f"{n % 2}\n" * 2 for n in range(24)))
    return folder


@pytest.mark.parametrize(
    "model", [{"name": "mpnn"}, {"name": "torch-geometric", "layer": "GINEConv"}], ids=str
)
def test_models_read_attributes_of_edges(fedmpi, tmp_path, model):
    with_bonds(tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE.replace("given", "iid").replace("rounds = 2", "rounds = 40"))
    assert "attributes: 2" in fedmpi("data", "describe", "own/OWN", code=0).stdout
    run(fedmpi, "dataset=own/OWN", *(f"model.{key}={value}" for key, value in model.items()))
    (path,) = (tmp_path / "runs").iterdir()
    assert load_run(path).results["test_correct"][-1].all()


def test_a_task_may_be_said_of_a_folder(fedmpi, tmp_path):
    write_graphs(tmp_path, "OWN", range(101))
    refused(fedmpi("data", "describe", "own/OWN", code=2), "as in ./OWN?task=regression")
    said = fedmpi("data", "describe", "own/OWN?task=regression", code=0).stdout
    assert "regression of 101 graphs" in said
    assert 'dataset = "own/OWN?task=regression"' in said


def test_nodes_of_one_graph_are_trained_on_in_their_parts(fedmpi, tmp_path):
    nodes = torch.arange(60)
    masks = {f"{part}_mask": nodes % 4 == place for place, part in enumerate(("train", "val", "test"))}
    torch.save(ring(60, y=nodes % 3, client=nodes // 30, **masks), tmp_path / "mine.pt")
    (tmp_path / "suite.toml").write_text(SUITE.replace("clients = 2", 'clients = 2, parts = "dataset"'))
    run(fedmpi, "dataset=./mine.pt", "model=gcn")
    (path,) = (tmp_path / "runs").iterdir()
    assert load_run(path).partition["sizes"].tolist() == [[8, 8, 7], [7, 7, 8]]


def test_a_wrong_table_is_refused_before_a_run(fedmpi, table):
    (table / "suite.toml").write_text(SUITE)
    for text, words in (("smiles,y\nC,1\n", "no column 'label'"), ("smiles,label\nC,inf\n", "infinite")):
        (table / "mine.csv").write_text(text)
        refused(run(fedmpi, code=2), words)
    (table / "mine.csv").unlink()
    refused(run(fedmpi, code=2), "no file ")
    assert sorted(path.name for path in table.iterdir()) == ["suite.toml"]


def test_a_wrong_client_of_a_folder_is_refused_and_leaves_nothing(fedmpi, tmp_path):
    folder = write_graphs(tmp_path, "OWN", [0, 1] * 12)
    (folder / "OWN_client.txt").write_text("x\n" * 23)
    (tmp_path / "suite.toml").write_text(SUITE)
    refused(run(fedmpi, "dataset=own/OWN", code=2), "OWN_client.txt: has 23 rows, but graph_labels has 24")
    assert not (tmp_path / "data").exists()


def test_folders_are_joined_by_plus_with_a_client_each(fedmpi, tmp_path):
    for name in ("ONE", "TWO"):
        write_graphs(tmp_path, name, [n % 2 for n in range(24)])
    assert 'partition = "per-dataset"' in fedmpi("data", "describe", "own/ONE+own/TWO", code=0).stdout
    (tmp_path / "suite.toml").write_text(SUITE)
    run(fedmpi, "dataset=./own/ONE+./own/TWO", "partition=per-dataset")
    (path,) = (tmp_path / "runs").iterdir()
    assert load_run(path).partition["clients"].tolist() == ["./own/ONE", "./own/TWO"]


def test_one_way_edges_and_a_single_class_are_said_by_fetch_and_by_a_run(fedmpi, tmp_path):
    torch.save([path_of(4) for _ in range(24)], tmp_path / "mine.pt")
    (tmp_path / "suite.toml").write_text(SUITE.replace('"given"', '"iid"').replace("mine.csv", "mine.pt"))
    lines = (
        "72 of 72 edges have no opposite: messages go one way",
        "there is one class only, so there is nothing to tell apart",
    )
    fetched, ran = fedmpi("data", "fetch", "./mine.pt", "--data", "data", code=0).stdout, run(fedmpi).stdout
    for line in lines:
        assert line in fetched
        assert f"./mine.pt: {line}" in ran
    assert "one class only" not in fedmpi("data", "fetch", "MUTAG", "--data", "data", code=0).stdout


def path_of(size):
    """Return a path whose edges have one direction."""
    return Data(
        x=torch.ones(size, 2), edge_index=torch.stack([torch.arange(size - 1), torch.arange(1, size)]), y=0
    )


def test_a_folder_of_ogb_is_trained_on_with_its_split(fedmpi, tmp_path):
    write(tmp_path / "ogbg_mine", drawn(40))
    said = fedmpi("data", "describe", "./ogbg_mine?add_inverse_edge=True", code=0).stdout
    assert "each pair in both directions; attributes: 2" in said
    case = 'partition = { name = "iid", clients = 2, parts = "dataset" }'
    (tmp_path / "suite.toml").write_text(SUITE.replace('partition = { name = "given", clients = 2 }', case))
    run(fedmpi, "dataset=./ogbg_mine?add_inverse_edge=True", "model=mpnn")
    (path,) = (tmp_path / "runs").iterdir()
    assert load_run(path).partition["sizes"].sum(axis=0).tolist() == [34, 3, 3]
