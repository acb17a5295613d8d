"""PPI: made archives and damaged ones; no copy of the real one is at hand."""

import io
import json
import zipfile

import numpy as np
import pytest

from fedmpi.datasets.families.protein_networks import check_networks, read_networks
from fedmpi.datasets.source import DataSource
from tests.refusals import refused


def links(*pairs):
    return {"directed": False, "links": [{"source": a, "target": b} for a, b in pairs]}


MADE = {
    # graph 7 has nodes 0 and 2, graph 9 has node 1; the link 1-2 is of two graphs
    "train_feats": np.asarray([[0.5, 1], [2, 3], [4, 5]]),
    "train_labels": np.asarray([[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    "train_graph_id": np.asarray([7, 9, 7]),
    "train_graph": links((0, 2), (2, 0), (0, 0), (1, 2)),
    "valid_feats": np.asarray([[6.0, 7]]),
    "valid_labels": np.asarray([[1, 1, 1]]),
    "valid_graph_id": np.asarray([1]),
    "valid_graph": links(),
    "test_feats": np.asarray([[8.0, 9], [10, 11]]),
    "test_labels": np.asarray([[0, 0, 0], [0, 1, 1]]),
    "test_graph_id": np.asarray([1, 1]),
    "test_graph": links((1, 0)),
}


def write(path, **changed):
    """Write the made graphs with some files changed, None for left out."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (MADE | changed).items():
            if isinstance(content, np.ndarray):
                stream = io.BytesIO()
                np.save(stream, content)
                archive.writestr(f"{name}.npy", stream.getvalue())
            elif content is not None:
                archive.writestr(f"{name}.json", json.dumps(content))
    return path


def test_graphs_of_all_parts_are_one_set(tmp_path):
    raw = read_networks(write(tmp_path / "ppi.zip"), "PPI")
    assert raw.topology.graph_ptr.tolist() == [0, 2, 3, 4, 6]
    assert raw.topology.row_ptr.tolist() == [0, 1, 2, 2, 2, 3, 4]
    assert raw.topology.columns.tolist() == [1, 0, 5, 4]
    assert raw.node_attributes.tolist() == [[0.5, 1], [4, 5], [2, 3], [6, 7], [8, 9], [10, 11]]
    assert raw.labels.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]]
    assert raw.parts.tolist() == [0, 0, 0, 1, 2, 2]
    assert (raw.examples, raw.task, raw.class_names) == ("node", "multi-task", ("0", "1", "2"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"test_graph": None}, r"holds no test_graph\.json"),
        ({"valid_labels": np.ones((1, 2))}, "must be as many in train, valid and test"),
        ({"test_labels": np.ones((1, 3))}, "for every node, not 2 features, 1 labels, 2 graph numbers"),
        ({"test_labels": np.full((2, 3), 2)}, "test_labels.npy: must be 0 or 1"),
        ({"test_feats": np.full((2, 2), 1e300)}, "test_feats.npy: must be finite in 32 bits"),
        ({"test_feats": np.ones(2)}, "must be numbers in 2 dimensions"),
        ({"test_graph_id": np.asarray([1.0, 1])}, "test_graph_id.npy: must be whole numbers"),
        ({"test_graph": links((0, 2))}, "test_graph.json: links something else than nodes below 2"),
        ({"test_graph": {"links": [{"source": 0}]}}, "test_graph.json: must be an object with links"),
        ({"test_graph": [1]}, "test_graph.json: must be an object with links"),
    ],
)
def test_inconsistent_archives_are_one_line(tmp_path, changed, message):
    path = write(tmp_path / "ppi.zip", **changed)
    with refused(match=message):
        read_networks(path, "PPI")


def test_a_made_copy_is_prepared_from_a_mirror(tmp_path):
    (tmp_path / "ppi").mkdir()
    archive = write(tmp_path / "ppi" / "ppi.zip")
    source = DataSource(tmp_path / "cache", tmp_path, offline=True)
    source.prepare("PPI")
    assert source.load("PPI").num_graphs == 4
    archive.write_bytes(archive.read_bytes()[:-1])
    with refused("is cut short or damaged"):
        check_networks(archive)
