"""Graphs that a model is given: the user's own, and datasets by name."""

import os
from pathlib import Path
from zipfile import ZipFile

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch as GeometricBatch
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset

from fedmpi.datasets.features import build
from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.models.networks import build as build_network
from fedmpi.models.options import GatOptions, GcnOptions, GinOptions, MpnnOptions
from fedmpi.trained.about import About
from fedmpi.trained.graphs import of_dataset, own, prepared
from fedmpi.trained.model import TrainedModel, digest_of
from tests.making import generated
from tests.mpi.molecules import prepare
from tests.trained.conftest import listed

ABOUT = {
    "suite": "s", "run": "r", "algorithm": "fedavg", "client": "a", "round": 1, "dataset": "d", "task": "t",
    "features": "attributes", "scaling": "none", "num_features": 2, "edge_features": 0, "examples": "graph",
    "names": ("no", "yes"), "outputs": "classes", "parameter_digest": "0" * 16, "fedmpi_version": "0",
}  # fmt: skip

EDGES = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])


def about(options=None, **changed):
    return About(**{**ABOUT, "model": (options or GinOptions()).model_dump(mode="json"), **changed})


def model(options=None, **changed):
    """Return a model of torch's own start."""
    known = about(options, **changed)
    network = build_network(options or GinOptions(), known.shape)
    return TrainedModel(
        known.model_copy(update={"parameter_digest": digest_of(network)}), network.state_dict()
    )


def triangle(**more):
    return Data(**{"x": torch.eye(3)[:, :2], "edge_index": EDGES, **more})


def test_own_graphs_are_packed_as_datasets_are():
    generic = generated(0, 30)
    raw = own(listed(generic), about(num_features=generic.table.shape[1]))
    (packed,) = prepared(raw, about(num_features=generic.table.shape[1]), None)
    assert np.array_equal(packed.features, generic.features)
    for part in ("graph_ptr", "row_ptr", "columns"):
        assert np.array_equal(getattr(packed.topology, part), getattr(generic.topology, part))


@pytest.mark.parametrize(
    "options", [GinOptions(), GinOptions(norm="batch"), GcnOptions(), GatOptions()], ids=str
)
def test_a_graph_has_the_same_outputs_alone_in_a_list_and_in_a_batch(options):
    chosen, graphs = model(options), [triangle(), Data(x=torch.ones(1, 2), edge_index=EDGES[:, :0])]
    together = chosen(graphs)
    assert torch.allclose(torch.cat([chosen(each) for each in graphs]), together, atol=1e-6)
    assert torch.equal(chosen(GeometricBatch.from_data_list(graphs)), together)


def test_graphs_of_networkx_are_those_of_torch_geometric():
    path = networkx.path_graph(3)
    networkx.set_node_attributes(path, dict(enumerate(torch.eye(3)[:, :2].tolist())), "x")
    chosen = model()
    assert torch.equal(chosen(path), chosen(triangle()))
    assert torch.equal(chosen([path, path]), chosen([triangle(), triangle()]))


def test_self_loops_and_duplicates_change_nothing():
    edges = torch.cat([EDGES, EDGES], dim=1)
    chosen = model()
    assert torch.equal(chosen(triangle(edge_index=edges)), chosen(triangle(edge_index=EDGES[:, :4])))


def test_attributes_stay_with_their_edges():
    chosen = model(MpnnOptions(), edge_features=1)
    attributes = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
    turned = torch.arange(4, -1, -1)
    first = chosen(triangle(edge_attr=attributes))
    assert torch.equal(chosen(triangle(edge_index=EDGES[:, turned], edge_attr=attributes[turned])), first)
    assert not torch.equal(chosen(triangle(edge_attr=attributes[turned])), first)


def test_degrees_are_made_of_the_graphs():
    chosen = about(features="degree", num_features=4)
    (packed,) = prepared(own(triangle(x=None, num_nodes=3), chosen), chosen, None)
    assert packed.features.argmax(axis=1).tolist() == [1, 2, 1]


def test_a_degree_without_a_column_is_refused():
    with pytest.raises(BadInput, match="a node of degree 2, above the maximum 1"):
        model(features="degree", num_features=2)(triangle(x=None, num_nodes=3))


def test_nodes_and_pairs_have_outputs_in_order():
    of_nodes, of_pairs = model(GcnOptions(), examples="node"), model(GcnOptions(), examples="edge")
    assert of_nodes([triangle(), triangle()]).shape == (6, 2)
    pairs = torch.tensor([[0, 1, 2], [1, 2, 1]])
    found = of_pairs([triangle(edge_label_index=pairs), triangle(edge_label_index=pairs)])
    assert torch.allclose(found[1], found[2])
    assert torch.allclose(found[:3], found[3:])
    assert not torch.allclose(found[0], found[1])


def test_what_is_predicted_of_classes_labels_and_numbers():
    classes = model().predict([triangle(), triangle()])
    assert set(classes.labels) <= {"no", "yes"}
    assert classes.probabilities.sum(axis=1) == pytest.approx([1, 1])
    labels = model(outputs="labels").predict(triangle())
    assert (labels.labels, labels.probabilities.shape) == (None, (1, 2))
    numbers = model(outputs="numbers", scale=(0.0, 0.0), center=(7.0, 8.0)).predict(triangle())
    assert numbers.values.tolist() == [[7.0, 8.0]]


def test_a_dataset_is_predicted_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDMPI_DATA", str(prepare(tmp_path)))
    chosen = model(
        GcnOptions(),
        num_features=8,
        edge_features=6,
        names=("a",),
        outputs="numbers",
        scale=(1.0,),
        center=(0.0,),
    )
    found = chosen.predict("ESOL")
    raw = of_dataset("ESOL", chosen.about)
    with torch.no_grad():
        outputs = chosen.network(Batch.of(build(raw, np.arange(60), "attributes")), None, "csr")
    assert np.array_equal(found.values, outputs.double().numpy())


def test_molecules_are_predicted_by_their_smiles(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDMPI_DATA", str(tmp_path))
    (tmp_path / "new.csv").write_text("smiles,label\nCCO,1\nc1ccccc1,2.5\nC,3\n")
    about = {"num_features": 8, "edge_features": 6, "names": ("a",), "outputs": "numbers"}
    chosen = model(GcnOptions(), **about, scale=(1.0,), center=(0.0,))
    found = chosen.predict(["CCO", "c1ccccc1", "C"])
    assert np.array_equal(found.values, chosen.predict(str(tmp_path / "new.csv")).values)
    assert np.array_equal(found.values, chosen.predict(np.array(["CCO", "c1ccccc1", "C"])).values)
    with pytest.raises(BadInput, match="graph 1: RDKit reads no molecule in CC\\)"):
        chosen.predict(["CCO", "CC)"])
    with pytest.raises(BadInput, match="SMILES: nodes have 8 features, the model reads 2"):
        model().predict(["CCO"])


def test_a_real_dataset_is_the_one_that_torch_geometric_reads(tmp_path, real_data):
    raw = tmp_path / "MUTAG" / "raw"
    raw.mkdir(parents=True)
    with ZipFile(Path(os.environ["FEDMPI_MIRROR"]) / "tudataset" / "MUTAG.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".txt"):
                (raw / Path(name).name).write_bytes(archive.read(name))
    graphs, chosen = TUDataset(str(tmp_path), "MUTAG"), model(features="labels", num_features=7)
    assert np.array_equal(chosen.predict(graphs).probabilities, chosen.predict("MUTAG").probabilities)


def test_sparse_features_are_the_same():
    chosen = model()
    assert torch.equal(chosen(triangle(x=torch.eye(3)[:, :2].to_sparse())), chosen(triangle()))


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        ([], "there are no graphs"),
        (7, "must be torch_geometric.data.Data, not int"),
        ([torch.zeros(3)], "must be torch_geometric.data.Data, not Tensor"),
        ([triangle(), triangle(x=None, num_nodes=3)], r"graph 1: it has no x, a tensor \[\*, 2\]"),
        (triangle(x=torch.ones(3, 5)), r"graph 0: x is \[3, 5\], not \[\*, 2\]"),
        (triangle(x=torch.full((3, 2), torch.nan)), "graph 0: x has NaN or infinity"),
        (triangle(edge_index=None), r"graph 0: it has no edge_index, a tensor \[2, \*\]"),
        (triangle(edge_index=EDGES.float()), "graph 0: edge_index must be whole numbers"),
        (triangle(edge_index=EDGES + 1), "graph 0: an edge names a node that is none of its 3"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_graphs_that_cannot_be_are_refused_in_a_line(graphs, words):
    with pytest.raises(BadInput, match=words):
        model()(graphs)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SIDER", "SIDER: nodes have 8 features, the model reads 2"),
        ("synthetic", "synthetic is 6 datasets: name one"),
        ("synthetic-nodes", "its examples are nodes, the model is for graphs"),
        ("nowhere", "unknown dataset nowhere"),
    ],
)
def test_datasets_that_do_not_fit_are_refused(tmp_path, monkeypatch, name, words):
    monkeypatch.setenv("FEDMPI_DATA", str(prepare(tmp_path)))
    monkeypatch.setenv("FEDMPI_OFFLINE", "1")
    with pytest.raises(BadInput, match=words):
        model().predict(name)
