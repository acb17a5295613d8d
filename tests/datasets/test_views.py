"""A diffused view is computed once for each content and options."""

import numpy as np
import pytest

from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.datasets.views import view_of
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


def test_a_damaged_view_is_computed_anew(raw, tmp_path):
    whole = view_of(raw, DiffusionOptions(), tmp_path)
    (weights,) = (tmp_path / "diffusion").glob("*/weights.npy")
    content = weights.read_bytes()
    weights.write_bytes(content[:-16] + bytes(16))
    assert np.array_equal(view_of(raw, DiffusionOptions(), tmp_path).weights, whole.weights)
    assert weights.read_bytes() == content
    assert len(list((tmp_path / "diffusion").iterdir())) == 1


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
