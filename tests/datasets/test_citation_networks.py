"""Citation and co-author networks: made files, damaged files, the real ones."""

import io
import zipfile

import numpy as np
import pytest

from fedmpi.datasets.families.citation_networks import read_network
from fedmpi.datasets.tables import DatasetFacts
from tests.refusals import refused

FACTS = DatasetFacts("made", 1, 2, 0, 3, 2, 4, 6)

MADE = {
    # edges 0-1, twice 2-1, the loop 1-1, and 1-3
    "adj_data": np.ones(5, np.float32),
    "adj_indices": np.asarray([1, 1, 3, 1, 1], np.int32),
    "adj_indptr": np.asarray([0, 1, 3, 5, 5], np.int32),
    "adj_shape": np.asarray([4, 4]),
    "attr_data": np.asarray([0.5, 2.0, 0.0, 1.0]),
    "attr_indices": np.asarray([2, 0, 1, 1], np.int32),
    "attr_indptr": np.asarray([0, 2, 3, 4, 4], np.int32),
    "attr_shape": np.asarray([4, 3]),
    "labels": np.asarray([7, 3, 3, 7]),
}


@pytest.fixture
def make(tmp_path):
    """Return a function that writes the made network with some arrays changed, None for left out."""

    def write(**changed):
        path = tmp_path / "made.npz"
        arrays = {name: array for name, array in (MADE | changed).items() if array is not None}
        np.savez_compressed(path, **arrays)
        return path

    return write


def test_network_is_read_as_pytorch_geometric_does(make):
    raw = read_network(make(adj_data=None), FACTS)
    assert raw.topology.graph_ptr.tolist() == [0, 4]
    assert raw.topology.row_ptr.tolist() == [0, 1, 4, 5, 6]
    assert raw.topology.columns.tolist() == [1, 0, 2, 3, 1, 1]
    assert raw.node_attributes.dense().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert raw.node_attributes.columns.tolist() == [0, 2, 1]
    assert (raw.labels.tolist(), raw.class_names) == ([1, 0, 0, 1], ("3", "7"))
    assert (raw.examples, raw.places.tolist(), raw.parts) == ("node", [0, 1, 2, 3], None)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": None}, r"holds no labels\.npy"),
        ({"labels": np.asarray([7, 3, 3])}, r"adj_shape is \[4, 4\] with 3 labels"),
        ({"labels": np.asarray([7, 3, 3, 1])}, "has 3 classes, but made has 2"),
        ({"labels": np.asarray([7.0, 3, 3, 7])}, "labels: must be whole numbers"),
        ({"labels": np.asarray(list("abcd"))}, "must be numbers in 1 dimensions"),
        ({"labels": np.asarray([7, 3, 3, 7], object)}, "must be numbers in 1 dimensions"),
        ({"labels": np.zeros((2, 2), int)}, "must be numbers in 1 dimensions"),
        ({"attr_shape": np.asarray([4, 2**62])}, "attr_shape is"),
        ({"adj_indices": np.asarray([1, 1, 4, 1, 1])}, "adj: its columns run from 1 to 4, but it has 4"),
        ({"adj_indices": np.asarray([1, 1, -1, 1, 1])}, "adj: its columns run from -1"),
        ({"adj_indptr": np.asarray([0, 1, 3, 2, 5])}, "adj: its row pointers"),
        ({"adj_indptr": np.asarray([0, 1, 5])}, "adj: its row pointers"),
        ({"adj_indptr": np.zeros(0, int)}, "adj: its row pointers"),
        ({"adj_indices": np.asarray([1, 1, 0, 1, 1])}, "has 4 directed edges, but made has 6"),
        ({"attr_indices": np.asarray([2, 0, 3, 1])}, "attr: its columns run from 0 to 3"),
        ({"attr_data": np.asarray([0.5, np.nan, 0, 1])}, "attr_data must hold 4 numbers, none below 0"),
        ({"attr_data": np.ones(3)}, "attr_data must hold 4 numbers"),
    ],
)
def test_inconsistent_files_are_one_line(make, changed, message):
    path = make(**changed)
    with refused("made.npz", match=message) as found:
        read_network(path, FACTS)
    assert "damaged" not in str(found.value)


def header(shape):
    """Return the head of an array of int64, which may lie about its shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", header((10**15,)), b"x" * 300])
def test_damaged_array_is_refused(make, content):
    path = make(labels=None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", content)
    with refused(match="is cut short or damaged"):
        read_network(path, FACTS)
