"""Steps and evaluations of several clients at once equal those of each alone by torch, on any examples."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedmpi.client.group_results import outcomes_of
from fedmpi.client.targets import TARGETS, targets_of
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.graphs.packed import sparse
from fedmpi.kernels.grouped_graphs import GroupGraphs
from fedmpi.kernels.networks import grouped_network
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import MODELS, Shape
from fedmpi.tasks.node_classification import NodeClassification
from tests.making import assert_close, client, flat, generated, labelled, with_labels
from tests.on_device import OnDevice
from tests.tasks.making import make_case, make_task

COLUMNS, CPU = 5, torch.device("cpu")
EVERY = [MODELS[name](hidden=16) for name in ("gin", "gcn", "gat", "sage", "sgc")]
EVERY.append(MODELS["gcn"](hidden=16, pooling="sum"))
EVERY += [MODELS[f"fedgraphnn/{name}"](hidden=16, node=12) for name in ("gcn", "gat", "sage")]
EVERY.append(MODELS["fedgraphnn/gat"](hidden=16, heads=3, dropout=0.3))
CASES = [(each, labels) for labels in ("classification", "multi-task", "regression") for each in EVERY]
CASES.append((MODELS["gcn"](hidden=16, head_layers=1), "classification"))
CASES += [
    (MODELS[name](hidden=16, head_layers=layers), "nodes")
    for name in ("gcn", "gat", "sage", "sgc")
    for layers in (1, 2)
]
CASES.append((MODELS["gin"](hidden=16), "nodes"))
NAMES = [f"{options.name}-{labels}" for options, labels in CASES]


def with_nodes(graphs):
    """Return graphs with sparse features of which a third of the nodes are examples, last nodes first."""
    topology, draws = graphs.topology, np.random.default_rng(6)
    table = np.where(draws.random((topology.num_nodes, 30)) < 0.2, draws.random((topology.num_nodes, 30)), 0)
    starts, sizes = topology.graph_ptr[:-1], np.diff(topology.graph_ptr)
    places = [start + np.arange(size)[::-3] for start, size in zip(starts, sizes, strict=True)]
    found = np.concatenate(places)
    rows, labels = np.arange(topology.num_nodes), draws.integers(0, 3, len(found))
    return replace(
        graphs, feature_rows=sparse(table.astype(np.float32)), node_row=rows, labels=labels, places=found
    )


class Clients:
    """Three clients with graphs of one data set, alone and as a group."""

    def __init__(self, options, labels, *, rounded, device=CPU):
        graphs, of = generated(0, 40), "node" if labels == "nodes" else "graph"
        self.classes = {"classification": 2, "nodes": 3}.get(labels, COLUMNS)
        if labels == "nodes":
            graphs = with_nodes(graphs)
        elif labels != "classification":
            graphs = with_labels(graphs, labels, COLUMNS)
        self.parts = [graphs.take(np.arange(*span)) for span in ((0, 20), (20, 22), (22, 40))]
        width = graphs.feature_rows.shape[1]
        self.options, self.model = options, flat(options, width, self.classes)
        standard = "standardised" if labels == "regression" else "raw"
        if labels == "nodes":
            raw = labelled(graphs.topology, graphs.labels, "012", places=graphs.places)
            self.task = NodeClassification(make_case(), [raw], [client(nodes=())])
        else:
            self.task = make_task(labels, graphs.labels, targets=standard)
        self.rows = torch.stack([self.model.initialise(4, number) for number in range(3)])
        targets = [replace(part, labels=targets_of(self.task, part.labels)) for part in self.parts]
        self.network = grouped_network(options, self.model, TARGETS[self.task.labels], of=of)
        self.graphs = GroupGraphs(targets, device, rounded=rounded, by_entry=self.network.by_entry)
        flops = options.flops(Shape(width, self.classes))
        self.alone = [TorchPasses(part, part, self.model, "csr", flops, self.task) for part in self.parts]

    def together(self, orders, streams):
        """Return the outcomes of all clients by place, and the gradients of those in a step."""
        host = self.graphs.resident(orders)
        found = streams and np.array([streams[place].keys(self.network.streams) for place in orders])
        keys = streams and torch.from_numpy(found.view(np.int64))
        (nats, found), gradient = self.step(self.rows[[*orders]], host.resident, keys)
        arrays = (nats.detach().flatten().double().numpy(), found.flatten(0, 1).numpy())
        return outcomes_of(self.task, 3, [host], *arrays), gradient

    def step(self, rows, batch, keys):
        """Return losses and predictions of a batch, and the gradient of parameters [k, length]."""
        leaf = rows.requires_grad_()
        nats, found = self.network.judge(self.network.logits(leaf, batch, keys), batch)
        (gradient,) = torch.autograd.grad((nats * batch.weights).sum(), leaf)
        return (nats, found), gradient


def assert_same(found, expected):
    assert_close(found.losses, expected.losses)
    assert found.hits.tolist() == expected.hits.tolist()
    if expected.predicted is not None:
        assert found.predicted.tolist() == expected.predicted.tolist()
    if expected.scores is not None:
        assert_close(found.scores, expected.scores)
        assert found.weights.tolist() == expected.weights.tolist()


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("options", "labels"), CASES, ids=NAMES)
def test_a_step_and_an_evaluation_equal_each_clients_alone(options, labels, rounded):
    clients = Clients(options, labels, rounded=rounded)
    streams = [DropoutStreams(1, number, 3, 0) for number in range(3)]
    some = {0: np.array([7, 2, 2]), 2: np.array([11, 0, 17, 4])}
    for orders in ({0: None, 1: None, 2: None}, some, {1: np.array([1])}):
        found, gradients = clients.together(orders, streams)
        assert [len(each.losses) > 0 for each in found] == [place in orders for place in range(3)]
        for gradient, (place, numbers) in zip(gradients, orders.items(), strict=True):
            passes = clients.alone[place]
            clients.model.parameters.copy_(clients.rows[place])
            expected = passes.step(passes.batch(numbers), streams[place])
            assert_same(found[place], expected.outcome)
            assert_close(gradient, clients.model.gradient)
    found, _ = clients.together({0: None, 1: None, 2: None}, None)
    for place, passes in enumerate(clients.alone):
        clients.model.parameters.copy_(clients.rows[place])
        assert_same(found[place], passes.evaluate().outcome)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("options", "labels"), CASES, ids=NAMES)
def test_a_pass_can_be_captured(options, labels, training):
    """Tensors on "meta" have no values: shapes that follow from any would raise."""
    clients = Clients(options, labels, rounded=True, device=torch.device("meta"))
    rows, keys = (
        clients.rows.to("meta"),
        torch.zeros(3, clients.network.streams, dtype=torch.int64, device="meta"),
    )
    host = clients.graphs.resident(dict.fromkeys(range(3)))
    with OnDevice():
        (nats, found), gradient = clients.step(rows, host.resident, keys if training else None)
    assert nats.shape == (3, host.sizes.examples) and gradient.shape == rows.shape
    one_class = labels in ("classification", "nodes")
    assert found.shape == (nats.shape if one_class else (*nats.shape, COLUMNS))
