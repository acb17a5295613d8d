"""`fedmpi data describe`: what a dataset holds, and lines of a suite that work."""

import pytest
import torch
from torch_geometric.data import Data

from fedmpi.store.reader import load_run
from tests.cli.own_graphs import write_graphs
from tests.cli.refusals import refused


def rows_of(text):
    """Return the lines of a table as words."""
    return [line.split() for line in text.splitlines() if line.strip()]


def path(label, size=4, **fields):
    ends = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    return Data(x=torch.ones(size, 3), edge_index=ends, y=label, **fields)


def test_graphs_features_and_classes_are_counted(fedmpi, tmp_path):
    torch.save(
        [path(n % 3, 3 + n % 2, client=n % 2, split="train", pos=n) for n in range(12)], tmp_path / "mine.pt"
    )
    rows = rows_of(fedmpi("data", "describe", "./mine.pt", code=0).stdout)
    expected = """
        graphs 12
        nodes 42; 3 to 4 in a graph
        edges 30; directed
        mind 30 of 30 edges have no opposite: messages go one way
        features original (3), attributes (3), degree (2), constant (1)
        task graph-classification of 12 graphs; classes: 3
        clients 2, of 6 to 6 graphs
        parts 12 training, 0 validation, 0 test, 0 in none
        0 4
        1 4
        2 4
        left out: field pos: not read
        dataset = "./mine.pt"
        partition = { name = "given", clients = 2, parts = "dataset" }
    """
    for line in rows_of(expected):
        assert line in rows


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        ([torch.tensor([[n % 2, 0.0 if n else float("nan")]]) for n in range(8)], ["y1", "7", "0", "1"]),
        ([n + 0.5 for n in range(8)], ["y", "0.5", "4", "7.5", "0"]),
    ],
)
def test_columns_of_labels_are_counted(fedmpi, tmp_path, labels, row):
    torch.save([path(label) for label in labels], tmp_path / "mine.pt")
    assert row in rows_of(fedmpi("data", "describe", "./mine.pt", code=0).stdout)


def network():
    nodes = torch.arange(60)
    return Data(x=torch.eye(60), edge_index=torch.stack([nodes, (nodes + 1) % 60]), y=nodes % 2)


@pytest.mark.parametrize("value", [[path(n % 2) for n in range(40)], network()], ids=["graphs", "nodes"])
def test_the_lines_for_a_suite_work(fedmpi, tmp_path, value):
    torch.save(value, tmp_path / "mine.pt")
    text = fedmpi("data", "describe", "./mine.pt", code=0).stdout
    case = text[text.index("[case]") :].replace("clients = 10", "clients = 3")
    (tmp_path / "suite.toml").write_text(f'name = "mine"\n{case}rounds = 1\n')
    fedmpi("run", "suite.toml", "--out", "runs", code=0)
    assert load_run(tmp_path / "runs" / "case").status == "complete"


def test_folders_are_described_and_one_class_is_said(fedmpi, tmp_path):
    write_graphs(tmp_path, "OWN", [7] * 12)
    text = fedmpi("data", "describe", "own/OWN", code=0).stdout
    assert ["7", "12"] in rows_of(text)
    assert "there is one class only" in text
    assert 'partition = { name = "iid", clients = 2 }' in text


def test_what_cannot_be_described_is_refused(fedmpi):
    refused(fedmpi("data", "describe", "./none.csv"), "no file ")
    refused(fedmpi("data", "describe", "synthetic"), "is generated from a suite's options")
