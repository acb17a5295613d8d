"""A module from options and shape: the one place that knows every model's class."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.encoder import GinEncoder
from fedmpi.models.fedgraphnn import MoleculeNetwork
from fedmpi.models.gin import GIN
from fedmpi.models.mvgrl import MvgrlEncoder
from fedmpi.models.options import (
    FedGraphNNOptions,
    FedStarOptions,
    GinEncoderOptions,
    GinOptions,
    MessagePassingOptions,
    ModelOptions,
    MvgrlEncoderOptions,
    Shape,
)
from fedmpi.models.two_channel import FedStarNetwork


class Network(Protocol):
    """What the engine asks of a module."""

    def __call__(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return logits [B, C]; `streams` is None in evaluation."""

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return what is pooled of each graph, [B, h], before the head."""


def build(options: ModelOptions, shape: Shape) -> nn.Module:
    """Make a `Network` without drawing from torch's global generator's stream."""
    with torch.random.fork_rng(devices=[]):
        return _make(options, shape)


def _make(options: ModelOptions, shape: Shape) -> nn.Module:
    match options:
        case GinOptions():
            return GIN(options, shape.width, shape.classes)
        case FedStarOptions():
            return FedStarNetwork(options, shape)
        case FedGraphNNOptions():
            return MoleculeNetwork(options, shape)
        case MessagePassingOptions():
            from fedmpi.models.message_passing import GraphNetwork  # torch-geometric takes a second

            return GraphNetwork(options, shape)
        case GinEncoderOptions():
            return GinEncoder(options, shape.width)
        case MvgrlEncoderOptions():
            return MvgrlEncoder(options, shape.width)
