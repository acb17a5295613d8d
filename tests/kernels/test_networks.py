"""The compiled networks equal torch-geometric's, dropout on, within 1e-5; and leave nothing behind."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from fedmpi.case.optimizers import AdamOptions
from fedmpi.client.optimizer import AdamState, steps_ahead
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.graphs.packed import GraphSet, Topology, pointers
from fedmpi.graphs.refinement.channels import channel_batch
from fedmpi.graphs.refinement.quotient import quotient
from fedmpi.graphs.refinement.weighted import message_quotient
from fedmpi.kernels.gin_batch import GinBatch, matrices
from fedmpi.kernels.gin_packing import packed as packed_graphs
from fedmpi.kernels.networks import fast_network
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.options import MODELS, FedStarOptions
from tests.kernels.conftest import STREAMS, compiled
from tests.making import assert_close, clique, flat, packed, thinned

GRAPHS = ("labelled", "cliques", "attributed")
NORMS = ("batch", "graph", "layer", "batch+graph")
NORMALISED = {"labelled": 1e-5, "attributed": 1e-5, "cliques": 1e-3}
"""Nodes of a clique are nearly equal, and what normalisation makes of the rest is mostly rounding: there torch's
own passes are up to 5e-4 from double precision, the compiled ones 8e-5."""

KINDS = ("gin", "fedstar", "gcn", "gat", "sage", "sgc", "mpnn")
SIZES = ({"hidden": 20}, {"hidden": 128}, {"layers": 1}, {"layers": 5})
OTHERS = {
    "gin": ({"hidden": 1},),
    "fedstar": ({"hidden": 1}, {"walks": 3, "degrees": 2}),
    **dict.fromkeys(KINDS[2:], ({"pooling": "sum"},)),
}
CHOSEN = np.array([7, 2, 9, 9, 0])
EVERY = [*(MODELS[kind]() for kind in KINDS), *(MODELS["gin"](norm=norm) for norm in NORMS)]


def fitting(options, graphs):
    """Return graphs with the encoding of nodes' places that FedStar reads."""
    if not isinstance(options, FedStarOptions):
        return graphs
    return replace(graphs, structure=structure_encoding(graphs.topology, options.walks, options.degrees))


@pytest.fixture
def directed(labelled):
    """The same graphs with a third of their edges in one direction only, so that nobody sees some nodes."""
    kept = np.arange(labelled.topology.num_edges) % 3 > 0
    return replace(labelled, topology=thinned(labelled.topology, kept))


@pytest.mark.parametrize(
    ("kind", "graphs", "dropout"),
    [
        (kind, graphs, dropout)
        for kind, graphs, dropout in product(KINDS, (*GRAPHS, "directed"), (0.0, 0.25, 0.3, 0.5))
        if dropout != 0.25 or kind in ("gin", "fedstar")
    ],
)
def test_equals_torch_geometric(equals_reference, kind, graphs, dropout, request):
    options = MODELS[kind](dropout=dropout)
    equals_reference(options, fitting(options, request.getfixturevalue(graphs)))


@pytest.mark.parametrize("kind, size", [(kind, each) for kind in KINDS for each in (*SIZES, *OTHERS[kind])])
def test_any_width_depth_and_pooling(equals_reference, kind, size, cliques):
    options = MODELS[kind](**size)
    equals_reference(options, fitting(options, cliques))


@pytest.mark.parametrize("graphs", GRAPHS)
@pytest.mark.parametrize("options", EVERY)
def test_a_batch_taken_from_more_graphs(equals_reference, options, graphs, request):
    tolerance = NORMALISED[graphs] if options.norms else 1e-5
    equals_reference(options, fitting(options, request.getfixturevalue(graphs)), CHOSEN, tolerance)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("hidden", [64, 20])
@pytest.mark.parametrize("graphs", GRAPHS)
def test_normalised_rows(equals_reference, graphs, hidden, norm, request):
    options = MODELS["gin"](hidden=hidden, norm=norm)
    equals_reference(options, request.getfixturevalue(graphs), tolerance=NORMALISED[graphs])


@pytest.mark.parametrize(
    ("options", "graphs"),
    [
        *((MODELS["gin"](norm=norm), "labelled") for norm in NORMS),
        *((FedStarOptions(), graphs) for graphs in GRAPHS),
    ],
)
def test_embeddings_are_those_of_torch_geometric(options, graphs, request):
    graphs = fitting(options, request.getfixturevalue(graphs))
    model, fast = compiled(options, graphs)
    with torch.no_grad():
        expected = model.module.embed(Batch.of(graphs), None, "reference").numpy()
    assert_close(fast.embed(fast.levels(graphs)), expected)


@pytest.mark.parametrize("kind", ["gin", "fedstar"])
def test_graphs_without_nodes_and_with_one_class(equals_reference, kind, labelled):
    options, whole = MODELS[kind](), labelled.take(np.arange(3))
    starts = pointers([0, *np.diff(whole.topology.graph_ptr), 0])
    for labels in (np.zeros(5, int), np.array([0, 1, 0, 2, 1])):
        graphs = replace(whole, topology=replace(whole.topology, graph_ptr=starts), labels=labels)
        equals_reference(options, fitting(options, graphs))


@pytest.mark.parametrize("kind", KINDS[2:])
def test_nodes_without_neighbours(equals_reference, kind):
    alone = Topology(np.array([0, 1, 3]), np.array([0, 0, 1, 2]), np.array([2, 1]))
    graphs = GraphSet(alone, np.eye(3, dtype=np.float32), np.arange(3), np.array([0, 1]))
    equals_reference(MODELS[kind](), graphs)


def test_a_class_of_more_than_255_twins(equals_reference):
    big = GraphSet(packed(clique(300)), np.ones((1, 2), np.float32), np.zeros(300, int), np.array([1]))
    assert quotient(big).largest_class == 300
    equals_reference(MODELS["gin"](layers=1), big)  # sums of 300 nodes cubed would cancel in the loss


def test_degrees_beyond_the_encoding_are_told_apart(equals_reference):
    # Two stars, of 3 and 4 leaves: alike to an encoding of one walk and one degree, not to the GCN.
    topology = packed(*((size, [(0, leaf) for leaf in range(1, size)]) for size in (4, 5)))
    graphs = GraphSet(topology, np.ones((1, 2), np.float32), np.zeros(9, int), np.array([0, 1]))
    options = FedStarOptions(walks=1, degrees=1)
    encoded = fitting(options, graphs)
    equals_reference(options, encoded)
    assert channel_batch(encoded, 1).structure.inputs.shape == (3, 3)


@pytest.mark.parametrize("kind", ["gin", "gat", "mpnn"])
def test_edges_from_a_node_to_itself_and_twice_the_same(equals_reference, kind):
    lines = [[0, 1, 1, 2], [0], [0, 2], [4], [3, 4]]
    odd = Topology(np.array([0, 3, 5]), pointers([len(line) for line in lines]), np.concatenate(lines))
    graphs = GraphSet(odd, np.eye(2, dtype=np.float32), np.array([0, 0, 1, 0, 0]), np.array([0, 1]))
    equals_reference(MODELS[kind](dropout=0.0), graphs)
    fast = compiled(MODELS[kind](), graphs)[1]
    batch = fast.prepare(graphs)
    fast.step(batch, STREAMS)
    assert batch.sizes == (2, 5, 10)


@pytest.fixture(params=["labelled", "cliques", "numbers"])
def bonded(request):
    """Graphs whose edges have attributes: three kinds, of which one has two columns set; or any numbers."""
    graphs = request.getfixturevalue(request.param.replace("numbers", "labelled"))
    draws, count = np.random.default_rng(2), graphs.topology.num_edges
    if request.param == "numbers":
        return replace(graphs, edges=draws.standard_normal((count, 3)).astype(np.float32))
    kinds = draws.integers(3, size=count)
    return replace(graphs, edges=np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], np.uint8)[kinds])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_messages_read_the_attributes_of_edges(equals_reference, dropout, bonded):
    # Two layers: in a third, a message 6e-8 from ReLU's kink falls on either side of it, by rounding.
    equals_reference(MODELS["mpnn"](dropout=dropout, layers=2), bonded)


def test_messages_of_a_batch_taken_from_more_graphs_with_attributes(equals_reference, bonded):
    equals_reference(MODELS["mpnn"](), bonded, chosen=CHOSEN)


@pytest.mark.parametrize("bonded", ["numbers"], indirect=True)
def test_a_batch_has_the_attributes_of_its_own_edges_alone(equals_reference, bonded, monkeypatch):
    monkeypatch.setattr("fedmpi.graphs.refinement.quotient._FEW_BONDS", 1)
    taken = message_quotient(bonded).take(np.array([4, 2]))
    assert len(taken.bonds) == bonded.take(np.array([4, 2])).topology.num_edges
    equals_reference(MODELS["mpnn"](), bonded, chosen=CHOSEN)


@pytest.mark.parametrize("heads", [1, 4, 16])
def test_any_number_of_heads(equals_reference, heads, labelled):
    equals_reference(MODELS["gat"](hidden=48, heads=heads, slope=0.1), labelled)


@pytest.mark.parametrize("options", EVERY)
def test_clients_of_other_shapes_leave_no_trace_in_the_scratch(options, labelled, cliques, attributed):
    scratch, found = Scratch(), []
    for graphs, hidden in ((labelled, 20), (cliques, 64), (attributed, 16), (labelled, 20)):
        wide = options.model_copy(update={"hidden": hidden})
        graphs = fitting(wide, graphs)
        model, fast = compiled(wide, graphs, scratch)
        fast.evaluate(fast.levels(graphs), graphs.labels)
        losses = fast.step(fast.prepare(graphs), STREAMS).losses
        found.append((losses, model.gradient.numpy().copy()))
    assert all(map(np.array_equal, found[0], found[-1]))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("chosen", [[7, 2, 9, 9, 0], [3], list(range(10)), [1, 1]])
def test_a_step_packs_graphs_as_a_quotient_does(name, chosen, request):
    whole = GinBatch.of(request.getfixturevalue(name))
    numbers = np.array(chosen)
    found, expected = (
        packed_graphs(whole.graphs, numbers),
        matrices(whole.whole.take(numbers), transposed=True),
    )
    for one, other in zip(found, expected, strict=True):
        for ours, theirs in zip(
            *(each if isinstance(each, tuple) else (each,) for each in (one, other)), strict=True
        ):
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


def test_clients_that_share_a_network_leave_no_trace_in_its_buffers(labelled, cliques):
    """Small, large, small: buffers have grown by then, and the client's bits are as before."""
    options = MODELS["gin"](hidden=20)
    width = max(graphs.feature_rows.shape[1] for graphs in (labelled, cliques))
    model = flat(options, width, 3)
    fast, start = fast_network(options, model, Scratch()), model.parameters.clone()

    def trained(graphs, batches):
        wide = np.zeros((len(graphs.feature_rows), width), np.float32)
        wide[:, : graphs.feature_rows.shape[1]] = graphs.feature_rows
        everything = fast.prepare(replace(graphs, feature_rows=wide))
        state = AdamState(model.trained)
        model.parameters.copy_(start)
        taken = [everything if each is None else everything.take(np.array(each)) for each in batches]
        descent = steps_ahead(AdamOptions(lr=1e-2), state, len(taken))
        moments = state.mean.numpy(), state.square.numpy()
        fast.descend(taken, [STREAMS] * len(taken), descent, *moments)
        return model.parameters.clone()

    first = trained(labelled, [[0, 1], [2, 2, 3]])
    trained(cliques, [list(range(10)), [9]])
    trained(labelled, [None])
    assert torch.equal(trained(labelled, [[0, 1], [2, 2, 3]]), first)


@pytest.mark.parametrize("options", EVERY)
def test_a_nan_in_the_first_layer_gives_a_nan_loss(options, labelled):
    graphs = fitting(options, labelled)
    model, fast = compiled(options, graphs)
    model.parameters[model.slots[0].start] = float("nan")
    assert np.isnan(fast.logits(fast.levels(graphs))).any()
    assert np.isnan(fast.step(fast.prepare(graphs), STREAMS).loss_sum)
