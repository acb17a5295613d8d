"""Compiles the losses of unsupervised objectives before rounds are timed."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from fedmpi.graphs.csr import Csr
from fedmpi.kernels import losses
from fedmpi.kernels.feed_forward import FastFeedForward
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinEncoderOptions, Shape
from fedmpi.objectives.unsupervised import InfoGraphNetwork


@cache
def warm_up() -> None:
    """Compile losses and heads, or take them from the cache, by two graphs of a node each."""
    options = GinEncoderOptions(hidden=8, layers=2)
    model = FlatModel(InfoGraphNetwork(options, Shape(1, 2)))
    head = FastFeedForward(model, "node_head", Scratch())
    vectors = head(torch.ones(2, options.dimension, requires_grad=True))
    numbers = np.arange(3, dtype=np.int32)
    members = Csr(numbers, numbers[:2], np.ones(2, np.float32), 2)
    losses.jensen_shannon(vectors, vectors, members).backward()  # type: ignore[no-untyped-call]
    losses.inter(torch.ones(2, 1), torch.ones(2, 1), torch.ones(2), 0.5)
