"""Compiled and grouped kernels by a model's options."""

from __future__ import annotations

from fedmpi.datasets.raw import ExampleKind
from fedmpi.errors import BadInput
from fedmpi.kernels.gin_network import FastGinNetwork
from fedmpi.kernels.graph_network import FastGraphNetwork
from fedmpi.kernels.grouped_molecules import GroupedMolecules
from fedmpi.kernels.grouped_network import GroupedGraphNetwork, GroupedNetwork
from fedmpi.kernels.node_network import FastNodeNetwork
from fedmpi.kernels.pooled_network import FastNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.targets import CLASSES
from fedmpi.kernels.two_channel import FastFedStar
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import (
    FedGraphNNOptions,
    FedStarOptions,
    GinOptions,
    MessagePassingOptions,
    ModelOptions,
)


def fast_network(
    options: ModelOptions,
    model: FlatModel,
    scratch: Scratch,
    kind: int = CLASSES,
    *,
    of: ExampleKind = "graph",
) -> FastNetwork:
    """Return the compiled kernels of a model that has them, bound to its vectors.

    Parameters
    ----------
    options : ModelOptions
    model : FlatModel
    scratch : Scratch
    kind : int, optional
        Of the targets: see `fedmpi.kernels.targets`.
    of : str, optional
        What examples are: graphs or nodes.
    """
    match options:
        case FedStarOptions():
            return FastFedStar(options, model, scratch, kind)
        case GinOptions(norm="none") if of != "node":
            return FastGinNetwork(options, model, scratch, kind)
        case GinOptions() | MessagePassingOptions():
            network = FastNodeNetwork if of == "node" else FastGraphNetwork
            return network(options, model, scratch, kind)
        case _:
            raise BadInput(f'model "{options.name}" has no compiled kernels, though its `kernels` says so')


def grouped_network(
    options: ModelOptions, model: FlatModel, kind: int = CLASSES, *, of: ExampleKind = "graph"
) -> GroupedNetwork:
    """Return the grouped kernels of a model that has them, for a kind of targets of graphs or nodes."""
    match options:
        case GinOptions() | MessagePassingOptions():
            return GroupedGraphNetwork(options, model, kind, of_nodes=of == "node")
        case FedGraphNNOptions():
            return GroupedMolecules(options, model, kind)
        case _:
            raise BadInput(f'model "{options.name}" has no grouped kernels, though its `kernels` says so')
