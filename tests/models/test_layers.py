"""Networks of torch-geometric's layers and whole models, against the same networks written in plain torch-geometric."""

import inspect
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn.functional import dropout

from fedmpi.client.torch_passes import counts_of
from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.counted import count_model
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.layer_options import LAYERS, STACKS, WHOLE
from fedmpi.models.layers import DropoutInside
from fedmpi.models.networks import build
from fedmpi.models.options import MODELS, Shape
from tests.algorithms.programs import named
from tests.making import flat, packed

DEGREES = torch.tensor([1, 3, 2])


def mlp():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))


PLAIN = {
    "GCNConv": lambda edges: pyg.GCNConv(8, 8, improved=True),
    "SAGEConv": lambda edges: pyg.SAGEConv(8, 8, aggr="max", project=True),
    "GATConv": lambda edges: pyg.GATConv(8, 2, heads=4, edge_dim=edges),
    "GATv2Conv": lambda edges: pyg.GATv2Conv(8, 8, heads=3, concat=False, edge_dim=edges),
    "TransformerConv": lambda edges: pyg.TransformerConv(8, 4, heads=2, beta=True, edge_dim=edges),
    "GINConv": lambda edges: pyg.GINConv(mlp(), train_eps=True),
    "GINEConv": lambda edges: pyg.GINEConv(mlp(), eps=0.5, edge_dim=edges),
    "PNAConv": lambda edges: pyg.PNAConv(
        8,
        8,
        ["mean", "min", "max", "std"],
        ["identity", "amplification", "attenuation"],
        DEGREES,
        edge_dim=edges,
        towers=2,
    ),
    "GPSConv": lambda edges: pyg.GPSConv(
        8, pyg.GINEConv(mlp(), edge_dim=edges) if edges else pyg.GINConv(mlp()), heads=2, norm="layer_norm"
    ),
}
GIVEN = {
    "GCNConv": {"improved": True},
    "SAGEConv": {"aggr": "max", "project": True},
    "GATConv": {"heads": 4},
    "GATv2Conv": {"heads": 3, "concat": False},
    "TransformerConv": {"heads": 2, "beta": True},
    "GINConv": {"train_eps": True},
    "GINEConv": {"eps": 0.5},
    "PNAConv": {"degrees": [1, 3, 2], "towers": 2},
    "GPSConv": {"heads": 2},
    "GCN": {"improved": True, "jk": "cat", "norm": "batch_norm", "act": "elu"},
    "GraphSAGE": {"aggr": "max", "norm": "graph_norm"},
    "GIN": {"train_eps": True, "norm": "batch_norm", "jk": "max"},
    "GAT": {"heads": 4, "v2": True, "norm": "layer_norm", "jk": "last"},
    "PNA": {"degrees": [1, 3, 2], "towers": 2, "act": "gelu"},
    "EdgeCNN": {"aggr": "mean", "norm": "batch_norm", "act": "tanh"},
    "AttentiveFP": {"num_timesteps": 2},
}
NAMES = [*LAYERS, *WHOLE]
WITHOUT_EDGES = [name for name in NAMES if name not in ("GINEConv", "AttentiveFP")]
LAYERS_WITH_EDGES = ["GATConv", "GATv2Conv", "TransformerConv", "GINEConv", "PNAConv", "GPSConv"]


def options(layer, **more):
    return MODELS["torch-geometric"].model_validate({"layer": layer, "hidden": 8, "layers": 2, **more})


@pytest.fixture(scope="module")
def bonded():
    """A triangle with a tail of one, a path of three and a single node; bonds of two kinds."""
    topology = packed((4, [(0, 1), (0, 2), (1, 2), (2, 3)]), (3, [(0, 1), (1, 2)]), (1, []))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 5)).astype(np.float32)
    bonds = np.eye(2, dtype=np.uint8)[rng.integers(0, 2, 12)]
    return GraphSet(topology, rows, np.arange(8), np.zeros(3, np.int64), bonds)


@pytest.fixture(scope="module")
def plain(bonded):
    return replace(bonded, edges=None)


class Network(nn.Module):
    """As a user of torch-geometric writes it."""

    def __init__(self, layer, edges):
        super().__init__()
        self.pre = nn.Linear(5, 8)
        self.conv = nn.ModuleList(PLAIN[layer](edges) for _ in range(2))
        self.post, self.readout = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x, edge_index, batch, **named):
        x = self.pre(x)
        for conv in self.conv:
            if isinstance(conv, pyg.GPSConv):
                x = conv(x, edge_index, batch, **named).relu()
            else:
                x = conv(x, edge_index, **named).relu()
        return self.readout(self.post(pyg.global_mean_pool(x, batch)).relu())


@pytest.mark.parametrize(
    ("layer", "edges"),
    [*((name, None) for name in PLAIN if name != "GINEConv"), *((name, 2) for name in LAYERS_WITH_EDGES)],
)
def test_logits_are_those_of_plain_torch_geometric(layer, edges, bonded, plain):
    module = flat(options(layer, options=GIVEN[layer]), 5, 3, edges or 0).module
    network = Network(layer, edges).eval()
    network.load_state_dict(module.state_dict())
    batch = Batch.of(bonded if edges else plain)
    named = {"edge_attr": batch.edges} if edges else {}
    with torch.no_grad():
        expected = network(batch.x, batch.edge_index, batch.graph_of_node, **named)
        assert expected.std(dim=0).min() > 0
        torch.testing.assert_close(module(batch, None), expected, rtol=1e-5, atol=1e-6)


class Whole(nn.Module):
    """A whole model of torch-geometric between the same Linears."""

    def __init__(self, name, edges):
        super().__init__()
        given = {key: value for key, value in GIVEN[name].items() if key != "degrees"}
        if name == "PNA":
            given |= {"aggregators": ["mean", "min", "max", "std"], "deg": DEGREES}
            given["scalers"] = ["identity", "amplification", "attenuation"]
        self.pre = nn.Linear(5, 8)
        more = {"edge_dim": edges} if edges else {}
        self.conv = nn.ModuleList([getattr(pyg.models, name)(8, 8, 2, **given, **more)])
        self.post, self.readout = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x, edge_index, batch, **named):
        x = self.conv[0](self.pre(x), edge_index, batch=batch, batch_size=3, **named)
        return self.readout(self.post(pyg.global_mean_pool(x, batch)).relu())


@pytest.mark.parametrize(
    ("name", "edges"), [*((name, None) for name in STACKS), *((name, 2) for name in ("GAT", "PNA"))]
)
def test_logits_are_those_of_a_whole_model_of_torch_geometric(name, edges, bonded, plain):
    module = flat(options(name, options=GIVEN[name], dropout=0.0), 5, 3, edges or 0).module
    network = Whole(name, edges)
    network.load_state_dict(module.state_dict())
    batch = Batch.of(bonded if edges else plain)
    named = {"edge_attr": batch.edges} if edges else {}
    streams, close = DropoutStreams(0, 0, 0, 0), {"rtol": 1e-5, "atol": 1e-6}
    for way in (network.train, network.eval):  # the batch's moments, then the running ones
        expected = way()(batch.x, batch.edge_index, batch.graph_of_node, **named)
        assert expected.std(dim=0).min() > 0
        torch.testing.assert_close(module(batch, streams), expected, **close)
        streams = None


def test_attentive_fp_with_one_layer_as_head_is_torch_geometrics(bonded):
    given = {"options": GIVEN["AttentiveFP"], "head_layers": 1, "dropout": 0.4}
    module = flat(options("AttentiveFP", **given), 5, 3, 2).module
    network = pyg.models.AttentiveFP(5, 8, 3, edge_dim=2, num_layers=2, num_timesteps=2).eval()
    state = {name.removeprefix("conv.0."): value for name, value in module.state_dict().items()}
    for ours, theirs in (("pre", "lin1"), ("readout", "lin2")):
        state |= {f"{theirs}.{part}": state.pop(f"{ours}.{part}") for part in ("weight", "bias")}
    network.load_state_dict(state)
    batch = Batch.of(bonded)
    with torch.no_grad():
        expected = network(batch.x, batch.edge_index, batch.edges, batch.graph_of_node)
        torch.testing.assert_close(module(batch, None), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_models_drop_in_training_alone(name, bonded):
    found = []
    for drop in (0.0, 0.5):
        given = {key: value for key, value in GIVEN[name].items() if key != "norm"}
        module = flat(options(name, options=given, dropout=drop, head_layers=1), 5, 3, 2).module
        found.append([module(Batch.of(bonded), streams) for streams in (None, DropoutStreams(0, 0, 0, 0))])
    (evaluated, trained), (evaluated_inside, trained_inside) = found
    assert torch.equal(evaluated, trained)
    assert torch.equal(evaluated_inside, evaluated)
    assert not torch.allclose(trained_inside, trained)


def test_running_moments_of_a_whole_model_are_statistics_and_its_constants_are_not():
    model = flat(options("GIN", options={"norm": "batch_norm"}), 5, 3)
    assert {slot.name.rpartition(".")[2] for slot in model.statistics} == {"running_mean", "running_var"}
    assert len(model.statistics) == 2 * 3  # an MLP's in each of two layers, and one between these


def test_what_leaves_the_client_of_a_whole_model():
    model = flat(options("GCN", options={"norm": "batch_norm"}), 5, 3)
    fedavg, fedbn = (
        model.shared(partial(named(name).shares, share="conv")).size for name in ("fedavg", "fedbn")
    )
    convolutions, norm = 2 * (8 * 8 + 8), 4 * 8  # scale, shift and running moments between two layers
    assert (fedavg, fedbn) == (convolutions + norm, convolutions)


def test_one_node_is_normalised_as_in_evaluation(plain):
    module = flat(options("GCN", options={"norm": "batch_norm"}, dropout=0.0), 5, 3).module
    alone = Batch.of(plain.take(np.array([2])))
    assert torch.equal(module(alone, DropoutStreams(0, 0, 0, 0)), module(alone, None))


@pytest.mark.parametrize("layer", WITHOUT_EDGES)
def test_nothing_reads_torchs_generator(layer, plain):
    inside = {"dropout": 0.5} if "dropout" in LAYERS.get(layer, ()) else {}
    model = flat(options(layer, options=GIVEN[layer] | inside), 5, 3)
    batch, before = Batch.of(plain), torch.random.get_rng_state()
    first = model.module(batch, DropoutStreams(0, 1, 2, 3))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(model.initialise(3, 1), model.parameters)
    assert torch.equal(model.module(batch, DropoutStreams(0, 1, 2, 3)), first)
    assert not torch.equal(model.module(batch, DropoutStreams(0, 1, 2, 4)), first)


@pytest.mark.parametrize("layer", [name for name in LAYERS if "dropout" in LAYERS[name]])
def test_layers_drop_in_training_alone(layer, plain):
    found = []
    for given in ({}, {"dropout": 0.5}):
        module = flat(options(layer, dropout=0.0, options=GIVEN[layer] | given), 5, 3).module
        batch = Batch.of(plain)
        found.append([module(batch, streams) for streams in (None, DropoutStreams(0, 0, 0, 0))])
    (evaluated, trained), (evaluated_inside, trained_inside) = found
    assert torch.equal(evaluated, trained)
    assert torch.equal(evaluated_inside, evaluated)
    assert not torch.allclose(trained_inside, trained)


def test_dropout_inside_takes_the_masks_of_one_stream_after_the_other():
    streams, ones = DropoutStreams(0, 1, 2, 3), torch.ones(4, 16)
    with DropoutInside(streams, 7):
        found = [nn.Dropout(0.25)(ones), dropout(ones, 0.5)]
    assert torch.equal(found[0], streams.apply(ones, 7, 0.25))
    assert torch.equal(found[1], streams.apply(ones, 8, 0.5))


@pytest.mark.parametrize("layer", WITHOUT_EDGES)
def test_convolutions_have_one_shape_whatever_the_features(layer):
    models = [
        flat(options(layer, options=GIVEN[layer]), width, classes) for width, classes in ((3, 2), (9, 4))
    ]
    found = [
        [(slot.name, slot.shape) for slot in model.slots if slot.name.startswith("conv.")] for model in models
    ]
    assert found[0] == found[1]
    assert len(found[0]) >= 4


@pytest.mark.parametrize(
    ("layer", "given"),
    [*((name, GIVEN[name]) for name in [*LAYERS, "PNA", "AttentiveFP"]), ("GINConv", {"eps": 0.5})],
)
def test_nothing_travels_that_nobody_trains(layer, given):
    model = flat(options(layer, options=given), 5, 3, 2)
    assert model.statistics == ()


@pytest.mark.parametrize("layer", WITHOUT_EDGES)
def test_a_client_without_held_out_graphs_has_no_outputs(layer, plain):
    module = flat(options(layer, options=GIVEN[layer]), 5, 3).module
    assert module(Batch.of(plain.take(np.zeros(0, np.int64))), None).shape == (0, 3)


@pytest.mark.parametrize("layer", LAYERS)
def test_options_are_those_that_torch_geometrics_layer_has(layer):
    renamed = {"degrees": "deg"}
    there = inspect.signature(getattr(pyg, layer).__init__).parameters
    assert {renamed.get(name, name) for name in LAYERS[layer]} <= set(there)


def test_a_whole_models_options_are_those_of_its_layers_and_of_the_stack():
    assert STACKS["GAT"] - STACKS["GCN"] == {"heads", "concat", "negative_slope", "residual", "v2"}
    assert STACKS["PNA"] == LAYERS["PNAConv"] | {"act", "norm", "jk"}


def test_a_layer_that_needs_attributes_of_edges_says_so():
    with pytest.raises(
        BadInput, match='"GINEConv" needs attributes of edges, the data have none: use "GINConv"'
    ):
        build(options("GINEConv"), Shape(5, 3))
    with pytest.raises(BadInput, match=r'"AttentiveFP" needs attributes of edges.*: use "GAT"'):
        build(options("AttentiveFP", options=GIVEN["AttentiveFP"]), Shape(5, 3))


def test_attention_between_all_nodes_of_a_graph_is_counted(plain):
    module = build(options("GPSConv", layers=1), Shape(5, 3))
    counts = counts_of(Batch.of(plain))
    assert (counts.graphs, counts.nodes, counts.edges) == (3, 8, 12)
    padded = 3 * 4  # every graph as large as the largest
    convolution = 2 * 8 * 2 * 8 * 8 + 2 * 8 * 2 * 8 * 16  # the MLPs of GINConv and of GPSConv
    attention = 2 * padded * 4 * 8 * 8 + 2 * 2 * 3 * 4 * 4 * 8  # four matrices; scores and sums of values
    dense = 2 * 8 * 5 * 8 + convolution + attention + 2 * 3 * 8 * 8 + 2 * 3 * 8 * 3
    assert count_model(module, plain).forward(counts).dense == dense


def test_products_of_whole_models_are_counted(bonded, plain):
    ends = 2 * 8 * 5 * 8 + 2 * 3 * 8 * 8 + 2 * 3 * 8 * 3  # of 8 nodes, then of 3 graphs
    stack = build(options("GCN", options={"jk": "cat"}), Shape(5, 3))
    convolutions, joined = 2 * 2 * 8 * 8 * 8, 2 * 8 * 16 * 8
    counts = counts_of(Batch.of(plain))
    assert count_model(stack, plain).forward(counts).dense == ends + convolutions + joined

    attentive = build(options("AttentiveFP", options=GIVEN["AttentiveFP"]), Shape(5, 3, 2))
    edges = 2 * 12 * (10 * 8 + 8 + 8 + 8 * 8)  # of 12 edges: with attributes, two scores, the message
    cell = 2 * 2 * 8 * 24  # a GRU cell
    nodes = 8 * (cell + 2 * 8 * 8 + cell)
    readout = 2 * (2 * (8 + 3) * 8 * 8 + 3 * cell)  # of 8 nodes and 3 graphs, twice
    assert count_model(attentive, bonded).forward(counts).dense == ends + edges + nodes + readout
