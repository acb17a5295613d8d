"""The head of a graph network, compiled: Linear, ReLU, dropout, Linear, and the loss of its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.products import Floats
from fedmpi.graphs.streams import Drop, Words
from fedmpi.kernels import head_loops as kernels
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.targets import CLASSES, judge_rows
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome

Targets = npt.NDArray[Any]


class FastHead:
    """Predicts the targets of B graphs by one row each.

    Targets are classes, int64 [B], or binary labels or numbers, float64 [B, T], NaN where one is missing.

    Parameters
    ----------
    model : FlatModel
        Its maps ``post`` and ``readout``.
    layer : int
        Number of the dropout's stream.
    how : Drop
        The dropout.
    scratch : Scratch
    kind : int
        Of the targets: see `fedmpi.kernels.targets`.
    """

    def __init__(self, model: FlatModel, layer: int, how: Drop, scratch: Scratch, kind: int) -> None:
        self._post, self._readout = LinearMap(model, "post"), LinearMap(model, "readout")
        self._layer, self._outputs, self._width = layer, self._readout.outputs, self._post.width
        self._how, self._scratch, self._kind = how, scratch, kind

    @property
    def maps(self) -> tuple[LinearMap, LinearMap]:
        """Both linear maps."""
        return self._post, self._readout

    def load(self) -> None:
        """Take over the model's parameters."""
        self._post.load()
        self._readout.load()

    def flops(self, graphs: int) -> int:
        """Return the FLOPs of a forward pass; a backward pass takes twice as many."""
        return 2 * graphs * self._width * (self._width + self._readout.width)

    def step(self, pooled: Floats, targets: Targets, streams: Words) -> tuple[Outcome, Floats]:
        """Run forward and back; return the outcome and the gradient of `pooled`, float32 [B, h]."""
        post, readout, size = self._post, self._readout, len(pooled)
        hidden, dropped, before, between = (
            self._scratch(f"{name} in head", size, self._width)
            for name in ("hidden", "dropped", "before", "between")
        )
        kept = self._scratch("kept in head", size, self._width, np.uint8)
        logits, gradient = (
            self._scratch(name, size, readout.width) for name in ("logits", "logits gradient")
        )
        maps, how = (post.arrays, readout.arrays), self._how
        kernels.forward(pooled, *maps, streams, self._layer, how, post.outputs, hidden, kept, dropped, logits)
        gradient[:] = 0
        outcome = self._judge(logits, targets, gradient)
        kernels.back(gradient, pooled, hidden, kept, dropped, how.scale, *maps, between, before)
        readout.store()
        post.store()
        return outcome, before

    def evaluate(self, pooled: Floats, targets: Targets) -> Outcome:
        """Judge graphs without dropout."""
        logits = self._logits(pooled)
        unused = self._scratch("logits gradient", len(targets), logits.shape[1])
        return self._judge(logits, targets, unused)

    def logits(self, pooled: Floats) -> Floats:
        """Return the outputs without dropout, float32 [B, C]."""
        return self._logits(pooled)[:, : self._outputs]

    def _logits(self, pooled: Floats) -> Floats:
        logits = self._scratch("logits", len(pooled), self._readout.width)
        self._readout.apply(self._hidden(pooled), logits, relu=False)
        return logits

    def _hidden(self, pooled: Floats) -> Floats:
        hidden = self._scratch("hidden in head", len(pooled), self._width)
        self._post.apply(pooled, hidden, relu=True)
        return hidden

    def _judge(self, logits: Floats, targets: Targets, gradient: Floats) -> Outcome:
        """Return the outcome of logits, and set the gradient of its mean loss."""
        losses, hits = np.empty(len(targets)), np.zeros(len(targets), np.uint8)
        if self._kind == CLASSES:
            kernels.cross_entropy(logits, targets, self._outputs, gradient, losses, hits)
            return Outcome(losses, hits)
        judge_rows(self._kind, targets, self._outputs, logits, gradient, losses)
        known = (~np.isnan(targets)).sum(axis=1)
        return Outcome(losses, hits, known, logits[:, : self._outputs].copy())
