"""A module from options and shape, and what the engine asks of it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.options import ModelOptions, Shape


class Network(Protocol):
    """What the engine asks of a module."""

    def __call__(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return logits [B, C]; `streams` is None in evaluation."""

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return what is pooled of each graph, [B, h], before the head."""


def build(options: ModelOptions, shape: Shape) -> nn.Module:
    """Make a `Network` without drawing from torch's global generator's stream."""
    with torch.random.fork_rng(devices=[]):
        module: nn.Module = options.network(shape)
        return module
