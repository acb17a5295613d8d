"""A diffused view is computed once for each content and options."""

import numpy as np
import pytest

from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.datasets.views import view_of
from fedmpi.errors import BadInput
from fedmpi.graphs.diffusion import DiffusionOptions, diffuse


@pytest.fixture
def raw():
    return generate(SyntheticOptions(graphs=10), 0)


def test_the_cached_view_is_the_computed_one(raw, tmp_path):
    computed = diffuse(raw.topology, DiffusionOptions())
    for _ in range(2):
        view = view_of(raw, DiffusionOptions(), tmp_path)
        assert np.array_equal(view.weights, computed.weights)
        assert np.array_equal(view.topology.columns, computed.topology.columns)
        assert np.array_equal(view.topology.row_ptr, computed.topology.row_ptr)
    assert len(list((tmp_path / "diffusion").iterdir())) == 1


def test_content_and_options_have_views_of_their_own(raw, tmp_path):
    view_of(raw, DiffusionOptions(), tmp_path)
    view_of(raw, DiffusionOptions(alpha=0.3), tmp_path)
    view_of(generate(SyntheticOptions(graphs=11), 0), DiffusionOptions(), tmp_path)
    assert len(list((tmp_path / "diffusion").iterdir())) == 3


def test_a_cache_that_cannot_be_written_is_named(raw, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot write the data cache"):
        view_of(raw, DiffusionOptions(), tmp_path / "file")


@pytest.mark.parametrize("part", ["row_ptr.npy", "columns.npy", "weights.npy", "meta.json"])
@pytest.mark.parametrize("damage", ["zeros", "cut", "empty", "gone"])
def test_a_damaged_view_is_computed_anew(raw, tmp_path, part, damage):
    options = DiffusionOptions()
    view_of(raw, options, tmp_path)
    (folder,) = (tmp_path / "diffusion").iterdir()
    content = (folder / part).read_bytes()
    bad = {"zeros": content[:-16] + bytes(16), "cut": content[: len(content) // 2], "empty": b""}
    if damage == "gone":
        (folder / part).unlink()
    else:
        (folder / part).write_bytes(bad[damage])
    view, computed = view_of(raw, options, tmp_path), diffuse(raw.topology, options)
    assert np.array_equal(view.weights, computed.weights)
    assert np.array_equal(view.topology.columns, computed.topology.columns)
    assert np.array_equal(view.topology.row_ptr, computed.topology.row_ptr)
    assert (folder / part).read_bytes() == content
    assert [each.name for each in (tmp_path / "diffusion").iterdir()] == [folder.name]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 1e-17}, "greater than or equal to 0.0001"),
        ({"kind": "heat", "t": 3e20}, "less than or equal to 10000"),
        ({"kind": "heat", "alpha": 0.7}, 'alpha is read with kind = "ppr" only'),
        ({"keep": "topk", "eps": 0.5}, 'eps is read with keep = "threshold" only'),
        ({"k": 3}, 'k is read with keep = "topk" only'),
    ],
)
def test_options_that_have_no_view_or_are_not_read_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        DiffusionOptions(**options)
