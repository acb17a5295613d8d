"""The generated domains."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.datasets.loading import load_all
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from tests.making import receivers


def graph_of(raw, graph):
    topology = raw.topology.take(np.array([graph]))
    kinds = raw.node_labels[raw.topology.nodes_of(np.array([graph])), 0]
    return (topology.row_ptr.tolist(), topology.columns.tolist(), kinds.tolist(), int(raw.labels[graph]))


@pytest.mark.parametrize("domain", range(6))
def test_a_graph_does_not_depend_on_how_many_there_are(domain):
    few = generate(SyntheticOptions(graphs=10), domain)
    many = generate(SyntheticOptions(graphs=25, domains=9), domain)
    assert [graph_of(few, graph) for graph in range(10)] == [graph_of(many, graph) for graph in range(10)]


def test_graphs_are_functions_of_seed_and_domain():
    first, second, other = (generate(SyntheticOptions(graphs=10, seed=seed), 2) for seed in (5, 5, 6))
    assert digest(first) == digest(second) != digest(other)
    options = SyntheticOptions(graphs=10, domains=12)
    assert len({digest(generate(options, domain)) for domain in range(12)}) == 12


@pytest.mark.parametrize("domain", range(6))
def test_graphs_are_undirected_simple_and_of_the_size_asked(domain):
    raw = generate(SyntheticOptions(nodes=(9, 11)), domain)
    sizes = np.diff(raw.topology.graph_ptr)
    assert set(sizes.tolist()) == {9, 10, 11}
    edges = set(zip(receivers(raw.topology).tolist(), raw.topology.columns.tolist(), strict=True))
    assert len(edges) == raw.topology.num_edges
    assert all((column, row) in edges and row != column for row, column in edges)


def test_shape_of_the_default():
    raws = load_all(DatasetOptions(), DataSource.from_environment())
    assert [raw.name for raw in raws] == [f"synthetic-{domain}" for domain in range(6)]
    assert [raw.num_graphs for raw in raws] == [120] * 6
    assert [raw.label_widths for raw in raws] == [(4,), (5,), (6,), (7,), (8,), (4,)]
    assert all(50 <= np.bincount(raw.labels)[0] <= 70 for raw in raws)


def test_some_graphs_carry_another_class_than_their_structure():
    labels = generate(SyntheticOptions(graphs=2000), 2).labels
    wrong = np.mean(labels != np.arange(2000) % 2)
    assert 0.03 < wrong < 0.07
    raw = generate(SyntheticOptions(classes=4, graphs=80), 1)
    assert (raw.num_classes, set(raw.labels.tolist())) == (4, {0, 1, 2, 3})


@pytest.mark.parametrize(
    "wrong", [{"nodes": (24, 12)}, {"nodes": (2, 12)}, {"graphs": 3}, {"classes": 1}, {"x": 1}]
)
def test_sizes_out_of_range_are_refused(wrong):
    with pytest.raises(ValidationError):
        SyntheticOptions(**wrong)


def test_synthetic_needs_no_files(tmp_path):
    source = DataSource(tmp_path / "cache", offline=True)
    source.check("synthetic")
    source.prepare("synthetic")
    assert source.members("synthetic") == ()
    assert source.status("synthetic") == "prepared"
    assert not (tmp_path / "cache").exists()
