"""Folders of one's own in the format of the Open Graph Benchmark, against a plain reading."""

import numpy as np
import pandas
import pytest

from fedmpi.datasets.names import family_of
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from tests.datasets.ogb_folders import drawn, write
from tests.making import receivers
from tests.refusals import refused


@pytest.fixture
def files():
    return drawn()


@pytest.fixture
def source(tmp_path):
    return DataSource(tmp_path / "cache", offline=True)


@pytest.fixture
def read(tmp_path, source):
    """Return a function that writes, prepares and loads files."""

    def read(files, said=""):
        name = f"{write(tmp_path / 'ogbg_mine', files)}{said}"
        source.check(name)
        source.prepare(name)
        assert family_of(name).task(name) == source.load(name).task
        return source.load(name)

    return read


def plain(folder, inverse):
    """Return the edges with their features, receiver and sender first, as pandas reads them."""

    def table(name):
        return pandas.read_csv(folder / "raw" / f"{name}.csv.gz", header=None).to_numpy()

    first, rows = np.cumsum(np.append(0, table("num-node-list"))), []
    edges, features, done = table("edge"), table("edge-feat"), 0
    for graph, (count,) in enumerate(table("num-edge-list")):
        for (sender, receiver), each in zip(
            edges[done : done + count] + first[graph], features[done : done + count], strict=True
        ):
            rows += [[receiver, sender, *each], [sender, receiver, *each]][: 1 + inverse]
        done += count
    return sorted(rows), first, table("node-feat")


@pytest.mark.parametrize("inverse", [False, True])
def test_graphs_are_what_a_plain_reading_gives(read, tmp_path, files, inverse):
    raw = read(files, "?add_inverse_edge=True" * inverse)
    edges, first, features = plain(tmp_path / "ogbg_mine", inverse)
    found = np.column_stack([receivers(raw.topology), raw.topology.columns, raw.edge_attributes])
    assert found.tolist() == edges
    assert raw.topology.graph_ptr.tolist() == first.tolist()
    assert np.array_equal(raw.node_attributes, features)
    assert (raw.task, raw.labels.tolist()) == ("classification", [0, 1] * 6)
    assert raw.parts.tolist() == [0] * 6 + [1] * 3 + [2] * 3
    assert (raw.examples, raw.refused) == ("graph", ())


def test_several_labels_have_gaps_and_a_graph_without_is_left_out(read, files):
    files["raw/graph-label"] = "1,\n,\n0,1\n" + "nan,0\n" * 9
    raw = read(files)
    assert raw.task == "multi-task"
    assert np.nan_to_num(raw.labels, nan=-1).tolist() == [[1, -1], [0, 1], *[[-1, 0]] * 9]
    assert raw.refused == ("graph 2: no label",)
    assert raw.topology.num_graphs == len(raw.parts) == 11
    assert np.diff(raw.topology.graph_ptr).tolist() == np.delete(files["raw/num-node-list"], 1).tolist()
    assert raw.edge_attributes.shape == (raw.topology.num_edges, 2)


def test_a_folder_needs_neither_features_nor_a_split(read, files):
    kept = {name: rows for name, rows in files.items() if "feat" not in name and "split" not in name}
    raw = read(kept)
    assert (raw.node_attributes, raw.edge_attributes, raw.parts) == (None, None, None)


def test_one_of_several_splits_is_named(read, files):
    others = {
        name.replace("scaffold", "random"): rows[::-1] for name, rows in files.items() if "split" in name
    }
    others["split/random/train"] = files["split/scaffold/test"]
    others["split/random/test"] = files["split/scaffold/train"]
    with refused("choose a split, as in ?split=random (there are: random, scaffold)"):
        read(files | others)
    assert read(files | others, "?split=random").parts.tolist() == [2] * 6 + [1] * 3 + [0] * 3


def test_labels_of_nodes_make_them_examples(read, files):
    labels = ["", *(str(node % 3) for node in range(1, int(files["raw/num-node-list"].sum())))]
    del files["raw/graph-label"]
    last = len(labels) - 1
    files |= {
        "raw/node-label": "\n".join(labels) + "\n",
        "split/scaffold/train": "0\n1\n2\n",
        "split/scaffold/valid": f"{last}\n",
        "split/scaffold/test": "",
    }
    raw = read(files)
    assert (raw.examples, raw.class_names, raw.places.tolist()) == (
        "node",
        ("0", "1", "2"),
        [*range(1, last + 1)],
    )
    assert raw.labels.tolist() == [int(label) for label in labels[1:]]
    assert raw.parts.tolist() == [0, 0, *[-1] * (last - 3), 1]
    assert raw.edge_width == 2


def test_an_edit_asks_for_a_new_preparation(read, source, files):
    before = digest(read(files))
    files["raw/edge-feat"] = files["raw/edge-feat"] + 0.5
    raw = read(files)
    assert source.verify(raw.name) == digest(raw) != before


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("raw/graph-label", "1\n0\n", "graph-label.csv.gz: has 2 rows, but there are 12 graphs"),
        ("raw/graph-label", "x\n1.5\n" * 6, "'x' is no number, as others are"),
        ("raw/graph-label", "\n" * 12, "no label is there"),
        ("raw/num-edge-list", "3\n" * 11, "num-edge-list.csv.gz: has 11 rows, but num-node-list has 12"),
        ("raw/num-node-list", "3\n" * 11 + "0\n", "num-node-list.csv.gz: must have one number of nodes for each"),
        ("raw/num-node-list", "9999999999\n" * 12, "num-node-list.csv.gz: must have one number of nodes for each"),
        ("raw/num-node-list", "9999999\n" * 12, "num-node-list.csv.gz: has more than 67,108,864 nodes"),
        ("raw/num-node-list", "3,1\n" * 12, "num-node-list.csv.gz: must have one number of nodes for each"),
        ("raw/num-edge-list", "1\n" * 12, "rows, but num-edge-list has 12 in all"),
        ("raw/num-edge-list", "-1\n" * 12, "must have one number of edges for each graph"),
        ("raw/edge", "0,1,2\n", "edge.csv.gz: must have two node numbers per row"),
        ("raw/edge", "", "edge.csv.gz: has 0 rows, but num-edge-list has"),
        ("raw/edge", "a,b\n", "edge.csv.gz: holds something else than whole numbers"),
        ("raw/node-feat", "1\n2\n", "node-feat.csv.gz: has 2 rows, but there are"),
        ("raw/edge-feat", "1\n2\n", "edge-feat.csv.gz: has 2 rows, but there are"),
        ("split/scaffold/valid", "12\n", "valid.csv.gz: has 12 to 12, but examples are 0 to 11"),
        ("split/scaffold/valid", "0\n", "valid.csv.gz: an example is in two parts"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused_and_leave_nothing(read, source, files, name, rows, words):
    with refused(words):
        read(files | {name: rows})
    assert not source.cache.exists()


def test_features_that_are_not_finite_are_refused(read, files):
    files["raw/node-feat"] = files["raw/node-feat"].astype(float)
    files["raw/node-feat"][4, 1] = np.nan
    with refused("node-feat.csv.gz: row 5 is not finite in 32 bits"):
        read(files)


def test_a_node_of_another_graph_is_refused(read, files):
    files["raw/edge"][3] = [0, 7]
    with refused("edge.csv.gz: row 4 names a node that its graph has not: [0, 7]"):
        read(files)


def test_numbers_of_nodes_are_not_predicted(read, files):
    nodes = int(files["raw/num-node-list"].sum())
    with refused("of nodes only classes, or labels of 0 and 1, are predicted, not numbers"):
        read(files | {"raw/node-label": "0.5\n" * nodes})


@pytest.mark.parametrize("name", ["raw/edge", "raw/num-node-list", "raw/graph-label", "split/scaffold/test"])
def test_a_file_that_is_not_there_is_named(read, files, name):
    del files[name]
    with refused(f"{name}.csv.gz: a folder with raw/ needs it"):
        read(files)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("?add_inverse_edge=yes", "add_inverse_edge is True or False, not 'yes'"),
        ("?split=size", "choose a split, as in ?split=scaffold (there are: scaffold)"),
        ("?inverse=True", 'there is no "inverse" (valid: task, split, add_inverse_edge)'),
    ],
)
def test_what_is_said_of_a_folder_must_be_true(read, files, said, words):
    with refused(words):
        read(files, said)


def test_a_damaged_file_is_refused(read, tmp_path, source, files):
    read(files)
    path = tmp_path / "ogbg_mine" / "raw" / "edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with refused("edge.csv.gz is cut short or damaged"):
        source.check(f"{tmp_path}/ogbg_mine")


def test_a_folder_of_text_files_below_is_none_of_ogb(make_folder, toy):
    folder = make_folder(toy)
    (folder / "raw").mkdir()
    assert family_of(str(folder)).name == "own"
