"""Reading the TU text format."""

import numpy as np
import pytest

from fedmpi.datasets.raw import digest
from fedmpi.datasets.tu import read_archive
from fedmpi.datasets.tu_folders import read_folder
from tests.refusals import refused


def test_folder_is_read_as_pytorch_geometric_does(make_folder, toy):
    raw = read_folder(make_folder(toy), "FOO", "FOO")
    assert raw.topology.graph_ptr.tolist() == [0, 3, 6, 7]
    assert raw.topology.row_ptr.tolist() == [0, 2, 4, 6, 7, 9, 10, 10]
    assert raw.topology.columns.tolist() == [1, 2, 0, 2, 0, 1, 4, 3, 5, 4]
    assert raw.labels.tolist() == [1, 0, 1]
    assert raw.class_names == ("-1", "1")
    assert raw.node_labels[:, 0].tolist() == [0, 2, 0, 3, 0, 0, 2]
    assert raw.label_widths == (4,)
    assert raw.node_attributes.dtype == np.float32
    assert raw.node_attributes[-1].tolist() == [-6.5, 70.0]
    assert (raw.num_graphs, raw.num_classes, raw.attribute_width) == (3, 2, 2)


@pytest.mark.parametrize(
    ("edges", "columns", "row_ptr"), [("1,2\n", [0], [0, 0, 1, 1, 1, 1, 1, 1]), ("", [], [0] * 8)]
)
def test_directions_are_kept_and_graphs_without_edges_allowed(make_folder, toy, edges, columns, row_ptr):
    toy["A"] = edges
    topology = read_folder(make_folder(toy), "FOO", "FOO").topology
    assert (topology.columns.tolist(), topology.row_ptr.tolist()) == (columns, row_ptr)


def test_digest_ignores_row_order_repeats_and_spacing(tmp_path, make_archive, toy):
    plain = digest(read_archive(make_archive("ONE", toy), "ONE", "ONE"))
    rows = toy["A"].strip().split("\n")
    toy["A"] = "\r\n".join(row.replace(" ", "") for row in [*rows[::-1], rows[3]]) + "\n\n"
    assert digest(read_archive(make_archive("TWO", toy), "TWO", "TWO")) == plain


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("A", "1, 2\n2, 1\n"),
        ("graph_labels", "1\n-1\n-1\n"),
        ("node_labels", "5\n7\n5\n8\n5\n5\n8\n"),
        ("node_attributes", "1\n2\n3\n4\n5\n6\n7\n"),
    ],
)
def test_digest_covers_every_part(make_archive, toy, part, text):
    plain = digest(read_archive(make_archive("ONE", toy), "ONE", "ONE"))
    toy[part] = text
    assert digest(read_archive(make_archive("TWO", toy), "TWO", "TWO")) != plain


def test_nodes_out_of_graph_order_are_sorted(make_archive, toy):
    plain = digest(read_archive(make_archive("ONE", toy), "ONE", "ONE"))
    move = {1: 7, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 6}  # node 1 goes to the end
    rows = [tuple(map(int, row.split(","))) for row in toy["A"].strip().split("\n")]
    toy["A"] = "".join(f"{move[a]}, {move[b]}\n" for a, b in rows)
    for part in ("graph_indicator", "node_labels", "node_attributes"):
        first, *others = toy[part].strip().split("\n")
        toy[part] = "\n".join([*others, first]) + "\n"
    moved = read_archive(make_archive("TWO", toy), "TWO", "TWO")
    # graph 1 now lists its nodes as 2, 3, 1: another numbering of the same triangle
    assert moved.topology.graph_ptr.tolist() == [0, 3, 6, 7]
    assert moved.topology.columns.tolist() == [1, 2, 0, 2, 0, 1, 4, 3, 5, 4]
    assert moved.node_labels[:, 0].tolist() == [2, 0, 0, 3, 0, 0, 2]
    assert digest(moved) != plain


def test_several_label_columns_have_widths_of_their_own(make_folder, toy):
    toy["node_labels"] = "0, 3\n1, 3\n0, 4\n0, 3\n0, 3\n0, 3\n2, 9\n"
    raw = read_folder(make_folder(toy), "FOO", "FOO")
    assert raw.label_widths == (3, 7)
    assert raw.node_labels[-1].tolist() == [2, 6]


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("A", "1, 8\n", "FOO_A.txt: node numbers run from 1 to 8, but graph_indicator has 7 nodes"),
        ("A", "0, 1\n", "FOO_A.txt: node numbers run from 0"),
        ("A", "1, 2\n3, 4\n", "FOO_A.txt: row 2 links nodes 3 and 4 of two graphs"),
        ("A", "1, 2\n3\n", "FOO_A.txt: its rows do not all have 2 numbers"),
        ("A", "1 2\n2 1\n", "FOO_A.txt: its rows do not all have 1 numbers"),
        ("A", "1, 2, 3\n", "FOO_A.txt: must have two node numbers per row"),
        ("A", "1, x\n", "FOO_A.txt: holds something else than whole numbers"),
        ("A", "1.5, 2\n", "FOO_A.txt: holds something else than whole numbers"),
        ("graph_indicator", "1\n1\n1\n2\n2\n2\n4\n", "indicator.txt: graph numbers run from 1 to 4"),
        ("graph_indicator", "1\n1\n1\n3\n3\n3\n3\n", "FOO_graph_indicator.txt: graph 2 has no nodes"),
        ("graph_labels", "1, 0\n0, 1\n1\n", "FOO_graph_labels.txt: its rows do not all have 2 labels"),
        ("graph_labels", "1\n1, 0\n1\n", "FOO_graph_labels.txt: its rows do not all have 1 label"),
        ("graph_labels", "1\n0.5\ntoxic\n", "row 3, column 'label': 'toxic' is no number, as others are"),
        ("graph_labels", "nan\n\n \n", "FOO: no label is there"),
        ("graph_labels", "1\n9007199254740993\n2\n", "classes are at most 9007199254740991, or text"),
        (
            "graph_labels",
            "1\n0\n",
            "indicator.txt: graph numbers run from 1 to 3, but graph_labels has 2 rows",
        ),
        ("graph_split", "train\nval\ndev\n", "FOO_graph_split.txt: row 3: 'dev' is none of train, val"),
        ("graph_split", "train\nval\n", "FOO_graph_split.txt: has 2 rows, but graph_labels has 3"),
        ("client", "a\n\nb\n", "FOO_client.txt: row 2 has no client: every row needs one"),
        ("client", "a\nb\na\nb\n", "FOO_client.txt: has 4 rows, but graph_labels has 3"),
        ("node_labels", "1\n2\n", "FOO_node_labels.txt: has 2 rows, but graph_indicator has 7 nodes"),
        ("node_attributes", "1\n2\n3\n4\n5\n6\nnan\n", "FOO_node_attributes.txt: row 7 is not finite"),
    ],
)
def test_inconsistent_files_are_refused_by_name(make_folder, toy, part, text, message):
    toy[part] = text
    with refused(message):
        read_folder(make_folder(toy), "FOO", "FOO")


@pytest.mark.parametrize(
    ("text", "task", "kind", "names", "labels"),
    [
        ("1.0\n-1.0\n1\n", "", "classification", ("-1", "1"), [1, 0, 1]),
        ("toxic\nnot toxic\ntoxic\n", "", "classification", ("not toxic", "toxic"), [1, 0, 1]),
        ("0.5\n-2\n1e2\n", "", "regression", ("label",), [[0.5], [-2], [100]]),
        ("1\n-2\n100\n", "regression", "regression", ("label",), [[1], [-2], [100]]),
        ("1, 0\n0, 1\n1, 1\n", "", "multi-task", ("label1", "label2"), [[1, 0], [0, 1], [1, 1]]),
        ("1, 0.5\n0, 1\n1, 1\n", "", "regression", ("label1", "label2"), [[1, 0.5], [0, 1], [1, 1]]),
    ],
)
def test_values_say_what_labels_of_a_folder_are(make_folder, toy, text, task, kind, names, labels):
    toy["graph_labels"] = text
    raw = read_folder(make_folder(toy), "FOO", "FOO", task)
    assert (raw.task, raw.class_names, raw.labels.tolist()) == (kind, names, labels)


def test_a_byte_order_mark_is_skipped_in_every_file(make_folder, toy):
    toy |= {"client": "a\na\nb\n", "graph_split": "train\nval\ntest\n"}
    folder = make_folder(toy)
    plain = digest(read_folder(folder, "FOO", "FOO"))
    for path in folder.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert digest(read_folder(folder, "FOO", "FOO")) == plain


def test_clients_and_parts_of_graphs_are_read(make_folder, toy):
    toy |= {"client": "10\n9\n10\n", "graph_split": "Train\nvalidation\n\n"}
    raw = read_folder(make_folder(toy), "FOO", "FOO")
    assert (raw.clients.tolist(), raw.client_names) == ([1, 0, 1], ("9", "10"))
    assert raw.parts.tolist() == [0, 1, -1]


def test_a_graph_without_a_label_is_left_out_and_named(make_folder, toy):
    toy |= {"graph_labels": "2\n\n5\n", "client": "a\nb\nc\n", "graph_split": "train\nval\ntest\n"}
    raw = read_folder(make_folder(toy), "FOO", "FOO")
    assert raw.refused == ("graph 2: no label",)
    assert raw.topology.graph_ptr.tolist() == [0, 3, 4]
    assert raw.topology.row_ptr.tolist() == [0, 2, 4, 6, 6]
    assert raw.topology.columns.tolist() == [1, 2, 0, 2, 0, 1]
    assert raw.node_labels[:, 0].tolist() == [0, 2, 0, 2]
    assert raw.node_attributes[:, 0].tolist() == [0.5, 1.5, 2.5, -6.5]
    assert (raw.labels.tolist(), raw.clients.tolist(), raw.parts.tolist()) == ([0, 1], [0, 2], [0, 2])


def test_labels_of_an_archive_are_whole_numbers(make_archive, toy):
    toy["graph_labels"] = "1, 0\n0, 1\n1, 1\n"
    with refused("FOO_graph_labels.txt: must have one class per row"):
        read_archive(make_archive("FOO", toy), "FOO", "FOO")


def test_a_damaged_byte_in_an_archive_is_found(make_archive, toy):
    archive = make_archive("FOO", toy)
    data = bytearray(archive.read_bytes())
    data[60] ^= 0xFF  # within the first member's compressed bytes
    archive.write_bytes(bytes(data))
    with refused(match="cut short or damaged"):
        read_archive(archive, "FOO", "FOO")
