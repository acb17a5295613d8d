"""Whatever happens to a file of the data cache, what is loaded is what was written, or nothing."""

import os
import random
import re

import numpy as np
import pytest

from fedmpi.datasets import cache, sealed
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Topology


@pytest.fixture
def folder(tmp_path):
    """A prepared set with every kind of array; those of nodes and edges are mapped."""
    draw = np.random.default_rng(18)
    nodes = 20_000
    row_ptr = np.arange(nodes + 1)
    raw = RawGraphs(
        "FOO",
        Topology(np.array([0, 9_000, nodes]), row_ptr, draw.integers(0, 9_000, nodes)),
        draw.integers(0, 3, (nodes, 1)),
        (3,),
        draw.random((nodes, 1), np.float32),
        np.array([0, 1]),
        ("a", "b"),
        edge_attributes=draw.integers(0, 2, (nodes, 6)).astype(np.uint8),
        scaffolds=np.array([0, 0]),
        refused=("row 7: no molecule: C#",),
    )
    cache.save(raw, tmp_path / "FOO", "test")
    return tmp_path / "FOO"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def loaded(folder):
    """Return what is loaded, or None where it is refused."""
    try:
        return cache.load(folder)
    except BadInput:
        return None


def test_every_kind_of_file_is_there(folder):
    arrays = "columns edge_attributes graph_ptr labels node_attributes node_labels row_ptr scaffolds"
    assert files(folder) == sorted(["meta.json", *(f"{name}.npy" for name in arrays.split())])
    raw = loaded(folder)
    assert isinstance(raw.topology.columns.base, np.memmap) and isinstance(raw.labels, np.ndarray)
    assert digest(raw) == cache.facts_of(folder).digest
    assert raw.refused == ("row 7: no molecule: C#",)


def test_whatever_byte_is_flipped_the_set_is_refused_or_the_same(folder):
    draw, whole = random.Random(18), loaded(folder)
    for name in files(folder):
        path = folder / name
        content = path.read_bytes()
        for place in [*draw.sample(range(len(content)), 25), *range(0, min(len(content), 120), 4)]:
            flipped = bytearray(content)
            flipped[place] ^= 1 << draw.randrange(8)
            path.write_bytes(flipped)
            found = loaded(folder)
            if found is not None:  # white space of the JSON text
                assert name == "meta.json"
                assert (digest(found), found.class_names) == (digest(whole), whole.class_names)
        path.write_bytes(content)
    assert loaded(folder) is not None


@pytest.mark.parametrize("what", ["cut", "empty", "gone", "folder", "fifo"])
def test_a_file_that_is_none_any_more_is_refused(folder, what):
    for name in files(folder):
        path = folder / name
        content = path.read_bytes()
        path.unlink()
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what != "gone":
            path.write_bytes(content[: len(content) // 2] if what == "cut" else b"")
        assert loaded(folder) is None, name
        path.rmdir() if what == "folder" else path.unlink(missing_ok=True)
        path.write_bytes(content)


def test_another_format_and_facts_of_other_types_are_refused(folder):
    text = (folder / "meta.json").read_text()
    (folder / "meta.json").write_text(re.sub('"format": ?2', '"format":1', text))
    assert (folder / "meta.json").read_text() != text
    assert loaded(folder) is None
    sealed.write(folder, {"labels": np.zeros(2)}, {"name": 5})
    assert sealed.read(folder).facts == {"name": 5}
    assert loaded(folder) is None
