"""Planetoid's networks: made files, damaged and hostile files, the real ones."""

import os
import pickle
import struct

import numpy as np
import pytest

from fedmpi.datasets.families.planetoid import read_network
from fedmpi.datasets.inert_pickle import unpickle
from fedmpi.datasets.names import family_of
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tables import DatasetFacts
from tests.refusals import refused

FACTS = DatasetFacts("Made", 1, 2, 0, 3, 3, 7, 8)


def number(value):
    return b"J" + struct.pack("<i", value)


def text(content):
    return b"T" + struct.pack("<i", len(content)) + content


def array(values):
    """Return the instructions by which Python 2 wrote an array."""
    shape = b"(" + b"".join(number(length) for length in values.shape) + b"t"
    code, order = values.dtype.str[1:].encode(), values.dtype.str[:1].encode()
    kind = b"cnumpy\ndtype\n" + text(code) + number(0) + number(1) + b"\x87R"
    kind += b"(" + number(3) + text(order) + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    new = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        + number(0)
        + b"\x85"
        + text(b"b")
        + b"\x87R"
    )
    return new + b"(" + number(1) + shape + kind + b"\x89" + text(values.tobytes()) + b"tb"


def matrix(row_ptr, columns, values, shape):
    """Return the instructions of a sparse matrix."""
    parts = {"indptr": row_ptr, "indices": columns, "data": values}
    dtypes = {"indptr": "<i4", "indices": "<i4", "data": "<f4"}
    state = b"}(" + text(b"_shape") + number(shape[0]) + number(shape[1]) + b"\x86"
    for name, content in parts.items():
        state += text(name.encode()) + array(np.asarray(content, dtypes[name]))
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81" + state + b"ub"


def lists(graph):
    """Return the instructions of a dict of lists."""
    lines = (number(node) + b"](" + b"".join(map(number, near)) + b"e" for node, near in graph.items())
    return b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + b"".join(lines) + b"u"


def whole(instructions):
    return b"\x80\x02" + instructions + b"."


def one_hot(classes):
    return whole(array(np.eye(2, dtype="<i4")[classes]))


MADE = {
    # nodes 0 to 3 in allx, the test nodes 6 and 4 in tx; node 5 has no row
    "allx": whole(matrix([0, 2, 2, 3, 4], [2, 0, 1, 1], [0.5, 1, 1, 1], (4, 3))),
    "tx": whole(matrix([0, 1, 2], [0, 2], [0.25, 1], (2, 3))),
    "y": one_hot([0, 1]),
    "ally": one_hot([0, 1, 1, 0]),
    "ty": one_hot([1, 0]),
    "graph": whole(lists({0: [1, 1, 0], 1: [0, 2], 2: [1, 6], 6: [2], 4: [], 3: [1], 5: []})),
    "test.index": b"6\n4\n",
}


@pytest.fixture
def make(tmp_path):
    """Return a function that writes the made network with some files changed."""

    def write(**changed):
        for part, content in (MADE | changed).items():
            (tmp_path / f"ind.made.{part}").write_bytes(content)
        return tmp_path

    return write


def test_network_is_read_as_pytorch_geometric_does(make):
    raw = read_network(make(), FACTS)
    assert raw.topology.row_ptr.tolist() == [0, 1, 4, 6, 7, 7, 7, 8]
    assert raw.topology.columns.tolist() == [1, 0, 2, 3, 1, 6, 1, 2]
    words = raw.node_attributes.dense()
    assert words[[0, 6, 4]].tolist() == [[1, 0, 0.5], [0.25, 0, 0], [0, 0, 1]]
    assert words[5].tolist() == [0, 0, 0]
    assert raw.node_attributes.columns[:2].tolist() == [0, 2]
    assert (raw.labels.tolist(), raw.class_names) == ([0, 1, 1, 0, 0, 0, 1], ("0", "1"))
    assert raw.parts.tolist() == [0, 0, 1, 1, 2, -1, 2]
    assert (raw.examples, raw.places.tolist()) == ("node", [0, 1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"test.index": b"6\n6\n"}, "each once"),
        ({"test.index": b"6, 4\n"}, "one node per row"),
        ({"test.index": b""}, "one node per row"),
        ({"test.index": b"6\n7\n"}, "nodes run from 6 to 7, but there are 7"),
        ({"test.index": b"6\n3\n"}, "allx has 4 rows and .*tx 2, but the 2 test nodes begin at 3"),
        ({"test.index": b"6\n4\n5\n"}, "but the 3 test nodes begin at 4"),
        ({"allx": MADE["y"]}, "allx: must be a sparse matrix"),
        ({"y": MADE["tx"]}, "y: must be a table of classes"),
        ({"graph": MADE["y"]}, "graph: must be a list of neighbours"),
        ({"tx": whole(matrix([0, 1, 2], [0, 3], [1, 1], (2, 3)))}, "columns run from 0 to 3"),
        ({"tx": whole(matrix([0, 2, 2], [0, 0], [1, 1], (2, 3)))}, "a feature of a node twice"),
        ({"tx": whole(matrix([0, 1, 2], [0, 2], [1, np.nan], (2, 3)))}, "must hold 2 finite numbers"),
        ({"tx": whole(matrix([0, 1, 2], [0, 2], [1, 1], (2, 4)))}, "and 3 columns"),
        ({"ty": whole(array(np.eye(3, dtype="<i4")[:2]))}, "ally: has 2 classes, but ty has 3"),
        ({"graph": whole(lists({0: [7]}))}, "something else than nodes below 7"),
        ({"graph": whole(lists({0: [-1]}))}, "something else than nodes below 7"),
        ({"graph": whole(lists({0: [1]}))}, "has 2 directed edges, but Made has 8"),
        ({"graph": whole(lists({0: [1] * 1000}))}, "has 1,000 neighbours"),
    ],
)
def test_inconsistent_files_are_one_line(make, changed, message):
    folder = make(**changed)
    with refused(match=message):
        read_network(folder, FACTS)


class Shell:
    """Its pickle runs a command."""

    def __reduce__(self):
        return os.system, ("touch hacked",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        MADE["allx"][:-1],
        MADE["allx"][:100],
        pickle.dumps(Shell(), 2),
        pickle.dumps(Shell(), 5),
        whole(b"cbuiltins\neval\n" + text(b"1/0") + b"\x85R"),
        whole(b"cnumpy\nfromfile\n" + text(b"/etc/passwd") + b"\x85R"),
        whole(b"]r" + struct.pack("<I", 1 << 31)),
        whole(MADE["y"][2:-1].replace(b"T\x02\x00\x00\x00i4", b"T\x02\x00\x00\x00O8")),
        whole(MADE["y"][2:-1].replace(number(2), number(1 << 30))),
    ],
)
def test_hostile_and_damaged_pickles_are_refused(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    path.write_bytes(content)
    with refused("file is cut short or damaged"):
        unpickle(path)
    assert os.listdir(tmp_path) == ["file"]


def test_pickle_larger_than_any_network_is_not_read(tmp_path):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with refused(match="file holds more than 67,108,864 bytes"):
        unpickle(path)


def test_a_mirror_without_one_of_the_files_lacks_the_network(make, tmp_path):
    folder = tmp_path / "mirror" / "planetoid"
    folder.mkdir(parents=True)
    family = family_of("Cora")
    files = family.files("Cora")
    assert len(files) == 7
    for file in files:
        assert family.locate("Cora", tmp_path / "mirror") is None
        (folder / file).write_bytes(b"")
    assert family.locate("Cora", tmp_path / "mirror") == folder
    source = DataSource(tmp_path / "cache", tmp_path / "mirror", offline=True)
    assert (source.status("Cora"), source.status("PubMed")) == ("mirror", "missing")
    with refused(match="run 'fedmpi data fetch PubMed'"):
        source.check("PubMed")
