"""Compiled heads of one Linear, and heads that say which class each example is of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedmpi.graphs.products import Floats
from fedmpi.graphs.streams import Words
from fedmpi.kernels.head import FastHead, Targets
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome


class FastReadout(FastHead):
    """A head of one Linear.

    Parameters
    ----------
    model : FlatModel
        Its map ``readout``.
    scratch : Scratch
    kind : int
        Of the targets: see `fedmpi.kernels.targets`.
    """

    def __init__(self, model: FlatModel, scratch: Scratch, kind: int) -> None:
        self._readout, self._scratch, self._kind = LinearMap(model, "readout"), scratch, kind
        self._outputs, self._width = self._readout.outputs, len(self._readout.transposed)

    def load(self) -> None:
        """Take over the model's parameters."""
        self._readout.load()

    def flops(self, graphs: int) -> int:
        """Return the FLOPs of a forward pass; a backward pass takes twice as many."""
        return 2 * graphs * self._width * self._readout.width

    def step(self, pooled: Floats, targets: Targets, streams: Words) -> tuple[Outcome, Floats]:
        """Run forward and back; return the outcome and the gradient of `pooled`, float32 [B, h]."""
        logits = self._logits(pooled)
        gradient = self._scratch("logits gradient", *logits.shape)
        gradient[:] = 0
        outcome = self._judge(logits, targets, gradient)
        self._readout.add_gradients(gradient, pooled)
        before = self._scratch("head gradient", len(pooled), self._width)
        self._readout.apply_back(gradient, before)
        return outcome, before

    def _hidden(self, pooled: Floats) -> Floats:
        return pooled


class FastNodeHead(FastHead):
    """A head of two Linears whose outcomes have the predicted classes."""

    def _judge(self, logits: Floats, targets: Targets, gradient: Floats) -> Outcome:
        predicted = logits[:, : self._outputs].argmax(axis=1).astype(np.int16)
        return replace(super()._judge(logits, targets, gradient), predicted=predicted)


class FastNodeReadout(FastNodeHead, FastReadout):
    """Likewise, of one Linear."""
