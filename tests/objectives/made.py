"""Graphs with a diffused view, and a client's passes over them, by an objective and kernels."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedmpi.client.fixed_batches import FixedBatches
from fedmpi.client.unsupervised import UnsupervisedPasses
from fedmpi.client.view_batches import CompiledBatches, TorchBatches
from fedmpi.graphs.diffusion import DiffusionOptions, ViewedGraphs, diffuse
from fedmpi.kernels.encoder import FastEncoder
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import Shape
from fedmpi.objectives.flops import ObjectiveFlops
from fedmpi.objectives.unsupervised import Network, network_of
from tests.making import generated

STREAMS = DropoutStreams(1, 0, 0, 0)


def viewed(count):
    built = generated(0, count)
    return ViewedGraphs(built, diffuse(built.topology, DiffusionOptions()))


def passes_of(objective, options, graphs, kernels="csr", train=None):
    """Return passes by "csr", "compiled", or "fixed": convolutions that are computed once."""
    train = graphs if train is None else train
    shape = Shape(graphs.graphs.feature_rows.shape[1], 2)
    model = FlatModel(network_of(objective, options, shape))
    model.parameters.copy_(model.initialise(1, 0))
    made, flops = objective.make(), ObjectiveFlops(objective, options, shape)
    network = Network.of(model.module)
    if kernels == "compiled":
        encoder = FastEncoder(options, model, (Scratch(), Scratch()))
        batches = CompiledBatches(train, graphs, made, flops, encoder)
        network = Network.compiled(model, encoder, Scratch())
    elif kernels == "fixed":
        batches = FixedBatches(train, graphs, made, flops, module=model.module)
    else:
        batches = TorchBatches(train, graphs, made, flops)
    return UnsupervisedPasses(batches, model, made, flops, network, not objective.keeps_last_round)


def dense_products():
    """Return what counts as torch does, but nothing for a sparse matrix, which it takes for a full one."""

    def counted(a, b, **_):
        return 0 if a.layout == torch.sparse_csr else 2 * a.shape[0] * a.shape[1] * b.shape[1]

    counted._get_raw = True
    return FlopCounterMode(display=False, custom_mapping={torch.ops.aten.mm: counted})
