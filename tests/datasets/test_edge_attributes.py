"""Attributes of the edges of one's own graphs: they stay with their edges, as torch-geometric has them."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.io import read_tu_data
from torch_geometric.utils import coalesce, remove_self_loops

from fedmpi.datasets.egos import EgoOptions, ego_networks
from fedmpi.datasets.features import build
from fedmpi.datasets.networks import attributed
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tu_folders import read_folder
from tests.making import receivers
from tests.refusals import refused


@pytest.fixture
def source(tmp_path):
    return DataSource(tmp_path / "cache", offline=True)


@pytest.fixture
def read(tmp_path, source):
    """Return a function that saves, prepares and loads a value."""

    def read(value):
        torch.save(value, tmp_path / "mine.pt")
        source.check(f"{tmp_path}/mine.pt")
        source.prepare(f"{tmp_path}/mine.pt")
        return source.load(f"{tmp_path}/mine.pt")

    return read


def rows(senders, receivers, attributes):
    """Return edges with their attributes in a fixed order."""
    table = np.column_stack([np.asarray(part) for part in (receivers, senders, attributes)])
    return table[np.lexsort((table[:, 1], table[:, 0]))]


def rows_of(raw):
    return rows(raw.topology.columns, receivers(raw.topology), raw.edge_attributes)


def assert_as_torch_geometric(folder):
    raw, (data, slices, _) = (
        read_folder(folder, folder.name, "OWN"),
        read_tu_data(str(folder), folder.name),
    )
    counts = np.diff(slices["edge_index"].numpy())
    senders, receiving = data.edge_index.numpy() + np.repeat(slices["x"].numpy()[:-1], counts)
    assert raw.edge_attributes.dtype == np.float32
    assert np.array_equal(rows_of(raw), rows(senders, receiving, data.edge_attr.numpy()))


def drawn(seed):
    """Return parts of a folder of graphs with edges that stand twice, and from a node to itself."""
    draws, lines = np.random.default_rng(seed), {"A": [], "graph_indicator": []}
    for graph in range(20):
        nodes = len(lines["graph_indicator"]) + 1 + draws.integers(5, size=(15, 2))
        lines["A"] += [f"{a}, {b}" for a, b in nodes.tolist()]
        lines["graph_indicator"] += [str(graph + 1)] * 5
    order = draws.permutation(len(lines["A"]))
    lines["A"] = [lines["A"][place] for place in order]
    lines["graph_labels"] = [str(graph % 2) for graph in range(20)]
    lines["node_labels"] = ["0"] * 100
    lines["edge_labels"] = [f"{a}, {b}" for a, b in draws.integers(3, 7, size=(300, 2)).tolist()]
    lines["edge_attributes"] = [f"{a}, {b}" for a, b in (draws.integers(-8, 8, size=(300, 2)) / 4).tolist()]
    return {part: "\n".join(values) + "\n" for part, values in lines.items()}


@pytest.mark.parametrize("without", ["edge_labels", "edge_attributes", "nothing"])
def test_a_folder_is_read_as_torch_geometric_does(make_folder, without):
    parts = drawn(1)
    parts.pop(without, None)
    assert_as_torch_geometric(make_folder(parts))


@pytest.mark.parametrize(("name", "width"), [("MUTAG", 4), ("AIDS", 3)])
def test_bonds_of_a_real_set_are_read_as_torch_geometric_does(mirror, tmp_path, name, width):
    zipfile.ZipFile(mirror / "tudataset" / f"{name}.zip").extractall(tmp_path)
    assert_as_torch_geometric(tmp_path / name)
    assert read_folder(tmp_path / name, name, "OWN").edge_width == width


def test_a_known_set_is_without_bonds_as_before(mirror, tmp_path):
    source = DataSource(tmp_path, mirror)
    source.prepare("MUTAG")
    assert source.load("MUTAG").edge_attributes is None


def test_attributes_leave_with_a_graph_without_label(make_folder, toy):
    toy |= {"graph_labels": "\n1\n2\n", "edge_attributes": "".join(f"{edge}\n" for edge in range(12))}
    raw = read_folder(make_folder(toy), "FOO", "FOO")
    assert rows_of(raw).tolist() == [[0, 1, 9], [1, 0, 8], [1, 2, 11], [2, 1, 10]]


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("edge_labels", "1\n2\n", "FOO_A.txt: has 12 rows, but there are 2 of attributes or labels"),
        ("edge_attributes", "1\n" * 13, "FOO_A.txt: has 12 rows, but there are 13"),
        ("edge_attributes", "1\n" * 11 + "nan\n", "FOO_edge_attributes.txt: row 12 is not finite in 32 bits"),
        (
            "edge_attributes",
            "1\n" * 11 + "1e39\n",
            "FOO_edge_attributes.txt: row 12 is not finite in 32 bits",
        ),
        ("edge_attributes", "3e38\n" * 12, "FOO_A.txt: attributes of duplicate edges, added up, are not"),
        ("edge_labels", "1\n" * 11 + "a\n", "FOO_edge_labels.txt: holds something else than whole numbers"),
        ("edge_labels", "1\n" * 11 + "100001\n", "FOO_edge_labels.txt: labels span 100001 values"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(make_folder, toy, part, text, words):
    toy[part] = text
    with refused(words):
        read_folder(make_folder(toy), "FOO", "FOO")


def test_labels_and_attributes_have_equally_many_rows(make_folder, toy):
    toy |= {"edge_labels": "1\n" * 12, "edge_attributes": "1\n" * 11}
    with refused("FOO_edge_labels.txt: has 12 rows, but edge_attributes has 11 rows"):
        read_folder(make_folder(toy), "FOO", "FOO")


def test_labels_beyond_memory_are_refused(make_folder, toy, monkeypatch):
    monkeypatch.setattr("fedmpi.datasets.tu._MOST_ONE_HOT_BYTES", 100)
    with refused("FOO_edge_labels.txt: 3 different labels are too many for so many edges"):
        read_folder(make_folder(toy | {"edge_labels": "1\n3\n" * 6}), "FOO", "FOO")


def test_an_edited_attribute_asks_for_a_new_preparation(make_folder, toy, source):
    folder = make_folder(toy | {"edge_labels": "1\n2\n" * 6})
    source.prepare(str(folder))
    before = source.digest_of(str(folder))
    (folder / "FOO_edge_labels.txt").write_text("1\n2\n" * 5 + "2\n12\n")
    source.prepare(str(folder))
    assert source.verify(str(folder)) != before


def graphs(seed=2, width=2):
    """Return graphs with edges that stand twice, and from a node to itself."""
    draws = torch.Generator().manual_seed(seed)
    ends = [torch.randint(4, (2, 12), generator=draws) for _ in range(10)]
    values = [torch.randint(-8, 8, (12, width), generator=draws) / 4 for _ in range(10)]
    return [
        Data(x=torch.ones(4, 1), edge_index=edges, edge_attr=each, y=n % 2)
        for n, (edges, each) in enumerate(zip(ends, values, strict=True))
    ]


def simple(each):
    """Return torch-geometric's simple graph: edges and attributes."""
    return coalesce(*remove_self_loops(each.edge_index, each.edge_attr))


def test_a_list_of_data_is_read_as_torch_geometric_simplifies_it(read, source):
    listed = graphs()
    raw = read(listed)
    found = [simple(each) for each in listed]
    senders, receiving = torch.cat([ends + 4 * n for n, (ends, _) in enumerate(found)], dim=1).numpy()
    expected = rows(senders, receiving, torch.cat([values for _, values in found]))
    assert np.array_equal(rows_of(raw), expected)
    assert (raw.edge_width, raw.refused) == (2, ())
    assert source.verify(raw.name) == digest(raw)
    assert digest(replace(raw, edge_attributes=raw.edge_attributes + 1)) != digest(raw)
    part = build(raw, np.array([7, 3]), "original")
    nodes = np.concatenate([found[7][1], found[3][1]])
    assert np.sort(part.edges, axis=0).tolist() == np.sort(nodes, axis=0).tolist()


def test_a_column_of_attributes_is_one_attribute(read):
    raw = read([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.tensor([3, 4]), y=0)])
    assert rows_of(raw).tolist() == [[0, 1, 4], [1, 0, 3]]


def test_a_graph_without_edges_needs_no_attributes(read):
    alone = Data(x=torch.ones(1, 1), edge_index=torch.zeros((2, 0), dtype=torch.long), y=1)
    assert read([*graphs(), alone]).edge_width == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (torch.ones(11, 2), "graph 4: edge_attr has 11 rows for 12 edges"),
        (torch.ones(12, 3), "graph 4: edge_attr has 3 columns, the first graph's 2"),
        (
            torch.ones(12, 2, 1),
            r"graph 4: edge_attr must have a row of features for each edge, not the shape",
        ),
        (torch.full((12, 2), torch.nan), "graph 4: edge_attr is not finite in 32 bits"),
        (torch.full((12, 2), 3e38), "edge_attr of duplicate edges, added up, is not finite in 32 bits"),
        (None, "graph 4: edge_attr has no columns, the first graph's 2"),
        ("bonds", "graph 4: edge_attr must be numbers"),
    ],
)
def test_attributes_of_data_that_do_not_fit_are_refused(read, values, words):
    listed = graphs()
    listed[4].edge_attr = values
    with refused(words):
        read(listed)


def network(read):
    """Return a ring of six nodes whose edge from ``a`` to ``b`` has the attribute ``10 a + b``."""
    nodes = torch.arange(6)
    ends = torch.stack([nodes, (nodes + 1) % 6])
    ends = torch.cat([ends, ends.flip(0)], dim=1)
    values = 10 * ends[0] + ends[1]
    return read(Data(x=torch.ones(6, 1), edge_index=ends, edge_attr=values, y=nodes % 2))


def named(topology, values, nodes):
    """Return whether the attribute of each edge is that of its nodes in the large graph."""
    senders, receiving = nodes[topology.columns], nodes[receivers(topology)]
    return bool(np.array_equal(np.asarray(values)[:, 0], 10 * senders + receiving))


def test_edges_of_one_graph_keep_their_attributes_in_ego_networks(read):
    raw = network(read)
    egos = ego_networks(raw, EgoOptions(number=4, hops=1))
    assert egos.topology.num_edges == 16
    assert named(raw.topology, raw.edge_attributes, np.arange(6))
    assert named(egos.topology, egos.edge_attributes, egos.node_rows)


def test_no_edge_has_no_attribute():
    topology, values = attributed(np.array([1]), np.array([1]), np.array([0, 2]), np.ones((1, 3), np.float32))
    assert (topology.num_edges, values.shape) == (0, (0, 3))
