"""fedmpi.run, fedmpi.load, fedmpi.compare: the same as the commands."""

import json
from pathlib import Path

import networkx
import pytest
import torch
from torch_geometric.data import Data

import fedmpi
from fedmpi.datasets.graph_files import read_graphs
from fedmpi.datasets.raw import digest
from fedmpi.errors import BadInput, Diverged
from fedmpi.store.reader import load_run

ROOT = Path(__file__).parents[1]
SUITE = {
    "name": "own/first",
    "case": {
        "rounds": 2,
        "dataset": {"synthetic": {"domains": 2, "graphs": 40}},
        "partition": "per-dataset",
        "algorithm": "fedavg",
    },
    "matrix": {"seed": [0, 1]},
}


def test_a_suite_is_a_dict_and_its_records_are_frames(tmp_path, capfd):
    frames = fedmpi.run(SUITE, ranks=2, out=tmp_path, settings={"algorithm": {"name": "fedprox", "mu": 0.1}})
    assert list(frames.runs["algorithm"]) == ["fedprox", "fedprox"]
    assert list(frames.runs["status"]) == ["complete", "complete"]
    assert "round 2/2" in capfd.readouterr().out
    assert (tmp_path / "suite.toml").exists()


def test_what_is_complete_is_not_run_again(tmp_path, capfd):
    first = fedmpi.run(SUITE, out=tmp_path, settings={"seed": 0}, quiet=True)
    again = fedmpi.run(SUITE, out=tmp_path, settings={"seed": 0})
    assert first.times.equals(again.times)
    assert "round 1/2" not in capfd.readouterr().out


def ring(size):
    """Return a ring of nodes, labelled by whether their number is odd."""
    nodes = torch.arange(size)
    ends = torch.stack([nodes, (nodes + 1) % size])
    return Data(x=torch.ones(size, 2), edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=size % 2)


def test_graphs_of_ones_own_are_trained_on(tmp_path):
    suite = {"name": "mine", "case": {"rounds": 1, "partition": {"name": "iid", "clients": 2}}}
    graphs = [ring(3 + n % 6) for n in range(30)]
    frames = fedmpi.run(suite, data=graphs, out=tmp_path, quiet=True)
    (file,) = tmp_path.glob("data-*.pt")
    assert list(frames.runs["dataset"]) == [str(file)]
    assert fedmpi.run(suite, data=graphs, out=tmp_path, quiet=True).times.equals(frames.times)
    with pytest.raises(BadInput, match=r"holds neither a torch_geometric.data.Data nor a list of them"):
        fedmpi.run(suite, data=[1, 2], out=tmp_path / "other")


GIVEN = {"name": "given", "clients": 2, "parts": "dataset"}


def test_clients_and_parts_of_a_dict_are_kept(tmp_path):
    parts = {"train": [ring(3 + n % 6) for n in range(8)], "val": [ring(3)] * 2, "test": [ring(4)] * 3}
    data = {"b": parts, 7: {"train": [ring(n) for n in range(3, 9)], "test": [ring(5)], "val": [ring(6)]}}
    suite = {"name": "mine", "case": {"rounds": 1, "partition": GIVEN}}
    fedmpi.run(suite, data=data, out=tmp_path, quiet=True)
    (record,) = tmp_path.glob("*/run.h5")
    partition = load_run(record.parent).partition
    assert partition["clients"].tolist() == ["7", "b"]
    assert partition["sizes"].tolist() == [[6, 1, 1], [8, 2, 3]]
    assert "client" not in parts["val"][0]


def test_graphs_of_networkx_are_those_of_torch_geometric(tmp_path):
    graphs = [networkx.cycle_graph(3 + n % 6) for n in range(30)]
    for graph in graphs:
        graph.graph["y"] = len(graph) % 2
        networkx.set_node_attributes(graph, [1.0, 1.0], "x")
        networkx.set_edge_attributes(graph, [2.0, 3.0], "edge_attr")
    suite = {"name": "mine", "case": {"rounds": 1, "partition": {"name": "iid", "clients": 2}}}
    fedmpi.run(suite, data=graphs, out=tmp_path, quiet=True)
    same = [ring(3 + n % 6) for n in range(30)]
    for each in same:
        each.edge_attr = torch.tensor([[2.0, 3.0]]).repeat(each.num_edges, 1)
    torch.save(same, tmp_path / "same.pt")
    (saved,) = tmp_path.glob("data-*.pt")
    assert digest(read_graphs(saved, "", "")) == digest(read_graphs(tmp_path / "same.pt", "", ""))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"a": ring(3)}, "data of client a: give a list of graphs, or a dict of lists by part"),
        ({"a": 3}, "data of client a: give a list of graphs"),
        ({"a": {"train": [ring(3)], "dev": [ring(3)]}}, "split 'dev' is none of train, val"),
        ([networkx.Graph([(0, 1, {"w": 1}), (1, 2)])], "Not all edges contain the same attributes"),
    ],
)
def test_graphs_that_cannot_be_read_are_refused(tmp_path, data, words):
    with pytest.raises(BadInput, match=words):
        fedmpi.run({"name": "mine", "case": {"partition": GIVEN}}, data=data, out=tmp_path)


def test_bad_input_is_the_line_of_the_command(tmp_path):
    with pytest.raises(BadInput, match=r"rounds: .*\(got 0\)"):
        fedmpi.run(SUITE, out=tmp_path, settings={"rounds": 0})
    with pytest.raises(BadInput, match="no such suite"):
        fedmpi.run("gcfl/protein")
    with pytest.raises(BadInput, match="a setting is text"):
        fedmpi.run(SUITE, out=tmp_path, settings={"rounds": None})


def test_a_run_that_diverges_names_round_and_client(tmp_path):
    wild = {"optimizer": {"name": "sgd", "lr": 1e30}, "seed": 0}
    with pytest.raises(Diverged, match="round 1: client synthetic-0"):
        fedmpi.run(SUITE, out=tmp_path, settings=wild, quiet=True)


def test_two_sides_are_paired_by_seed(tmp_path):
    fedmpi.run(SUITE, out=tmp_path / "a", quiet=True)
    fedmpi.run(SUITE, out=tmp_path / "b", quiet=True, settings={"algorithm": "fedprox"})
    found = fedmpi.compare(tmp_path / "a", tmp_path / "b")
    accuracy = found[found["figure"].str.startswith("test_accuracy")]
    assert set(accuracy["pairs"]) == {2}
    both = fedmpi.compare(tmp_path / "a", tmp_path / "b", by="algorithm", reference="fedavg")
    assert set(both["other"]) == {"algorithm fedprox"}
    same = both[both["figure"].str.startswith("test_accuracy")]
    for column in ("figure", "pairs", "difference", "verdict"):
        assert same[column].tolist() == accuracy[column].tolist()
    with pytest.raises(BadInput, match="by = SETTING"):
        fedmpi.compare(tmp_path / "a")


@pytest.mark.parametrize("notebook", ["first-steps", "trained-model"])
def test_a_notebook_is_stored_with_its_picture(notebook):
    last = json.loads((ROOT / "docs" / f"{notebook}.ipynb").read_text())["cells"][-1]
    assert "image/png" in last["outputs"][0]["data"]
