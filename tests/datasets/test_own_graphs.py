"""Graphs of one's own, saved by torch."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.io import read_planetoid_data, read_tu_data
from torch_geometric.utils import coalesce, remove_self_loops

from fedmpi.datasets import graph_items, inert_torch
from fedmpi.datasets.families.planetoid import Planetoid
from fedmpi.datasets.names import family_of
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tu import read_archive
from fedmpi.partition.options import Given, Iid
from fedmpi.partition.partition import make
from tests.refusals import refused


@pytest.fixture
def source(tmp_path):
    return DataSource(tmp_path / "cache", offline=True)


@pytest.fixture
def write(tmp_path):
    """Return a function that saves a value, and returns the name of a dataset."""

    def write(value, said=""):
        torch.save(value, tmp_path / "mine.pt")
        return f"{tmp_path}/mine.pt{said}"

    return write


@pytest.fixture
def read(write, source):
    """Return a function that saves, prepares and loads a value."""

    def read(value, said=""):
        name = write(value, said)
        source.check(name)
        source.prepare(name)
        assert family_of(name).task(name) == source.load(name).task
        return source.load(name)

    return read


def edges(*pairs):
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T


def graph(label, size=3, **fields):
    """Return a path of nodes with two features each."""
    pairs = [(n, n + 1) for n in range(size - 1)]
    ends = edges(*pairs, *[(b, a) for a, b in pairs])
    return Data(x=torch.arange(2.0 * size).reshape(size, 2), edge_index=ends, y=label, **fields)


def assert_same(raw, graphs):
    """Compare structure and features with those of torch-geometric's own reading."""
    assert raw.topology.graph_ptr.tolist() == np.cumsum([0, *(each.num_nodes for each in graphs)]).tolist()
    receivers = np.repeat(np.arange(raw.topology.num_nodes), np.diff(raw.topology.row_ptr))
    found = np.stack([raw.topology.columns, receivers])
    starts = raw.topology.graph_ptr
    own = [coalesce(remove_self_loops(each.edge_index)[0], sort_by_row=False) for each in graphs]
    expected = torch.cat([each + int(start) for each, start in zip(own, starts, strict=False)], dim=1)
    assert found.tolist() == expected.tolist()
    if graphs[0].x is not None:
        assert torch.equal(
            torch.tensor(np.array(raw.node_attributes)), torch.cat([each.x for each in graphs])
        )


def test_a_list_is_what_torch_geometric_reads(read, source):
    draws = torch.Generator().manual_seed(1)
    graphs = [
        Data(
            x=torch.randn(n + 2, 3, generator=draws),
            edge_index=torch.randint(n + 2, (2, 3 * n), generator=draws),
            y=torch.tensor([(5, 2)[n % 2]]),
        )
        for n in range(12)
    ]
    raw = read(graphs)
    assert_same(raw, torch.load(Path(raw.name), weights_only=False))
    assert (raw.task, raw.class_names, raw.labels.tolist()) == ("classification", ("2", "5"), [1, 0] * 6)
    assert (raw.examples, raw.clients, raw.parts, raw.refused) == ("graph", None, None, ())
    assert source.verify(raw.name) == digest(raw)


def test_slices_of_one_tensor_are_read(read):
    numbers = torch.arange(40.0).reshape(10, 4)
    graphs = [Data(x=numbers[n : n + 3, 1:3], edge_index=edges((0, 2)), y=numbers[n, 0]) for n in range(4)]
    raw = read(graphs)
    assert_same(raw, graphs)
    assert raw.labels.tolist() == [0, 1, 2, 3]


def test_a_real_set_of_graphs_is_read_as_from_its_archive(read, real_data, tmp_path):
    archive = Path(os.environ["FEDMPI_MIRROR"]) / "tudataset" / "MUTAG.zip"
    zipfile.ZipFile(archive).extractall(tmp_path)
    data, slices, _ = read_tu_data(str(tmp_path / "MUTAG"), "MUTAG")
    cuts = [slices[key].tolist() for key in ("x", "edge_index", "y")]
    graphs = [
        Data(x=data.x[a:b], edge_index=data.edge_index[:, c:d], y=data.y[e:f])
        for a, b, c, d, e, f in zip(*(part for cut in cuts for part in (cut[:-1], cut[1:])), strict=True)
    ]
    raw, known = read(graphs), read_archive(archive, "MUTAG", "MUTAG")
    for part in ("graph_ptr", "row_ptr", "columns"):
        assert np.array_equal(getattr(raw.topology, part), getattr(known.topology, part))
    assert np.array_equal(raw.labels, known.labels)
    assert np.array_equal(np.argmax(raw.node_attributes, axis=1), known.node_labels[:, 0])


def test_a_real_network_is_read_as_from_its_files(read, real_data):
    folder = Path(os.environ["FEDMPI_MIRROR"]) / "planetoid"
    raw, known = read(read_planetoid_data(str(folder), "cora")), Planetoid().read(folder, "Cora")
    assert (raw.examples, raw.task, raw.class_names) == ("node", "classification", known.class_names)
    assert digest(raw) == digest(known)


@pytest.mark.parametrize(
    ("labels", "said", "kind", "found"),
    [
        ([torch.tensor([0.5]), 2, torch.tensor(-1.0)], "", "regression", [[0.5], [2], [-1]]),
        ([1, 2, 4], "?task=regression", "regression", [[1], [2], [4]]),
        (torch.tensor([[0, 1], [1, 0], [1, 1]]).split(1), "", "multi-task", [[0, 1], [1, 0], [1, 1]]),
        ([True, False, torch.tensor([[True]])], "", "classification", [1, 0, 1]),
    ],
)
def test_the_values_of_labels_say_what_they_are(read, labels, said, kind, found):
    raw = read([graph(label) for label in labels], said)
    assert (raw.task, raw.labels.tolist()) == (kind, found)


def test_what_has_no_label_or_is_not_read_is_named(read):
    graphs = [
        graph(1, pos=torch.zeros(3, 2)),
        graph(None),
        graph(float("nan")),
        graph(2, size=4, name="last"),
    ]
    raw = read(graphs)
    assert raw.refused == (
        "graph 1: no label",
        "graph 2: no label",
        "field name: not read",
        "field pos: not read",
    )
    assert raw.topology.graph_ptr.tolist() == [0, 3, 7]


def test_graphs_without_features_say_how_many_nodes(read):
    raw = read([Data(edge_index=edges((0, 1)), y=0, num_nodes=4), Data(edge_index=edges((2, 1)), y=1)])
    assert (raw.topology.graph_ptr.tolist(), raw.node_attributes) == ([0, 4, 7], None)


def test_clients_and_parts_of_graphs_are_kept(read):
    clients, parts = ["north", 7, torch.tensor([7]), "north"], ["train", "train", "val", "Test"]
    graphs = [graph(n % 2, client=clients[n], split=parts[n]) for n in range(4)]
    raw = read([graphs[0], graph(None, client="east"), *graphs[1:]])
    assert raw.client_names == ("7", "east", "north")
    raw = read(graphs)
    found = make(Given(clients=2, parts="dataset"), [raw]).clients
    assert [client.name for client in found] == ["7", "north"]
    assert [client.graphs.tolist() for client in found] == [[1, 2], [0, 3]]
    assert (found[0].val.tolist(), found[1].test.tolist()) == ([2], [3])


def network(**fields):
    """Return a directed ring of six nodes."""
    ends = edges(*[(n, (n + 1) % 6) for n in range(6)])
    return Data(**({"x": torch.eye(6), "edge_index": ends, "y": torch.tensor([3, 1, 3, -1, 1, 3])} | fields))


def masks(train, val=(), test=()):
    parts = zip(("train_mask", "val_mask", "test_mask"), (train, val, test), strict=True)
    return {key: torch.isin(torch.arange(6), torch.tensor(part)) for key, part in parts}


def test_nodes_of_one_graph_are_examples_where_they_have_labels(read):
    raw = read(network(**masks([0, 1], [2], [5])))
    assert_same(raw, [network()])
    assert (raw.examples, raw.class_names) == ("node", ("1", "3"))
    assert (raw.places.tolist(), raw.labels.tolist()) == ([0, 1, 2, 4, 5], [1, 0, 1, 0, 1])
    assert raw.parts.tolist() == [0, 0, 1, -1, 2]


def test_clients_of_nodes_keep_those_without_label_and_part(read):
    raw = read(network(client=torch.tensor([4, 4, 4, 4, 9, 9]), **masks([0, 4], [2], [5])))
    first, second = make(Given(clients=2, parts="dataset"), [raw]).clients
    assert (first.name, first.nodes.tolist(), first.train.tolist()) == ("4", [0, 1, 2, 3], [0])
    assert (second.nodes.tolist(), second.test.tolist()) == ([4, 5], [4])
    assert make(Iid(clients=1, parts="dataset"), [raw]).clients[0].train.tolist() == [0, 3]


OF_GRAPHS = [
    (Data(y=1, edge_index=edges()), "graph 1: has no nodes"),
    (Data(x=torch.ones(2, 2), y=1), "graph 1: edge_index must be whole numbers [2, E]"),
    (Data(x=torch.ones(2, 2), y=1, edge_index=edges((0, 2))), "edge_index has nodes 0 to 2, but there are 2"),
    (Data(x=torch.ones(2), y=1, edge_index=edges()), "x must have a row of features for each node"),
    (Data(x=torch.ones(2, 3), y=1, edge_index=edges()), "x has 3 columns, the first graph's 2"),
    (Data(x=torch.tensor([[0, float("nan")]]), y=1, edge_index=edges()), "x is not finite in 32 bits"),
    (graph(torch.tensor([1, 2])), "y must be one number or a row [1, T], not of shape [2]"),
    (graph(torch.tensor([[1, 2]])), "y must be equally long in all graphs, here it is 1 and 2"),
    (graph(float("inf")), "a label is infinite"),
    (graph("toxic"), "y must be numbers"),
    (graph(1, client="a\n"), "graph 0 has no client"),
    (graph(1, client="a\nb"), "'a\\nb' cannot be a name"),
    (graph(1, client=3), "graph 0 has no client, others have"),
    (graph(1, client=0.5), "client must be 1 whole number"),
    (graph(1, split="dev"), "graph 1: split 'dev' is none of train, val"),
]


@pytest.mark.parametrize(("value", "words"), OF_GRAPHS, ids=[words for _, words in OF_GRAPHS])
def test_graphs_that_do_not_fit_are_refused_and_leave_nothing(write, source, value, words):
    name = write([graph(0), value])
    for step in (source.check, source.prepare):
        with refused(words):
            step(name)
    assert not source.cache.exists()


def test_graphs_of_which_none_has_a_label_are_refused(write, source):
    with refused("no graph has y, its label"):
        source.check(write([Data(x=torch.ones(2, 2), edge_index=edges((0, 1)))]))


OF_NODES = [
    ({"y": None}, "y must have a label for each node, as this is no list of graphs"),
    ({"y": torch.arange(5)}, "y has 5 rows for 6 nodes"),
    ({"y": torch.full((6,), -1)}, "no label is there"),
    ({"y": torch.arange(6) / 2}, "y are numbers, but of nodes only classes"),
    ({"train_mask": torch.ones(6)}, "train_mask must say yes or no of each of the 6 nodes"),
    (masks([0, 1], [1]), "val_mask: a node is in two parts"),
    ({"client": torch.arange(5)}, "client must be 6 whole numbers"),
]


@pytest.mark.parametrize(("fields", "words"), OF_NODES, ids=[words for _, words in OF_NODES])
def test_nodes_that_do_not_fit_are_refused(write, source, fields, words):
    with refused(words):
        source.prepare(write(network(**fields)))
    assert not source.cache.exists()


def test_stand_ins_stay_as_they_are(write, source):
    """A pickle that sets an attribute of what stands for a tensor, for all files that follow."""
    name = write([graph(0), graph(1)])
    with zipfile.ZipFile(name) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    parts["mine/data.pkl"] = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}X\x08\x00\x00\x00__init__Ns\x86b."
    with zipfile.ZipFile(name, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    with refused("is cut short or damaged"):
        source.check(name)
    source.check(write([graph(0), graph(1)]))


class Bomb:
    """Leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    "wrapped", [lambda bomb: bomb, lambda bomb: [graph(0, name=bomb)]], ids=["alone", "inside"]
)
def test_nothing_that_a_file_names_is_run(write, source, tmp_path, wrapped):
    name = write(wrapped(Bomb(tmp_path / "struck")))
    with refused("it names "):
        source.check(name)
    assert not (tmp_path / "struck").exists()


@pytest.mark.parametrize("value", [[], {}, 3, [3], HeteroData(), torch.ones(3)], ids=repr)
def test_a_file_of_something_else_is_refused(write, source, value):
    with refused(match="holds neither a torch_geometric.data.Data nor a list|which is not read"):
        source.check(write(value))


def test_a_huge_file_is_refused(write, source, monkeypatch):
    name = write([graph(0), graph(1)])
    for module in (graph_items, inert_torch):
        with monkeypatch.context() as patch, refused("mine.pt holds more than 100 bytes"):
            patch.setattr(module, "MOST_BYTES", 100)
            source.check(name)


def test_a_damaged_file_is_refused(write, source, tmp_path):
    name = write([graph(0), graph(1)])
    content = Path(name).read_bytes()
    for damaged in (content[:-30], pickle.dumps([1]), b""):
        Path(name).write_bytes(damaged)
        with refused("is cut short or damaged"):
            source.check(name)


def test_numbers_beyond_their_file_are_refused(write, source):
    name = write([graph(0), graph(1)])
    with zipfile.ZipFile(name) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text[:-8] if part.endswith("data/0") else text)
    Path(name).write_bytes(content.getvalue())
    with refused("bytes for 6 numbers <f4"):
        source.check(name)
