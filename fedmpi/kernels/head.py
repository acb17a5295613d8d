"""The head of a graph classifier, compiled: Linear, ReLU, dropout, Linear, cross-entropy."""

from __future__ import annotations

import numpy as np

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import Int
from fedmpi.graphs.products import Floats
from fedmpi.kernels import gin_loops as kernels
from fedmpi.kernels.dropout import FastDropout
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome


class FastHead:
    """Classifies B graphs by one row each.

    Parameters
    ----------
    model : FlatModel
        Its maps ``post`` and ``readout``.
    layer : int
        Number of the dropout's stream.
    dropout : FastDropout
    scratch : Scratch
    """

    def __init__(self, model: FlatModel, layer: int, dropout: FastDropout, scratch: Scratch) -> None:
        self._post, self._readout = LinearMap(model, "post"), LinearMap(model, "readout")
        self._layer, self._classes, self._width = layer, self._readout.outputs, self._post.width
        self._dropout, self._scratch = dropout, scratch

    def load(self) -> None:
        """Take over the model's parameters."""
        self._post.load()
        self._readout.load()

    def flops(self, graphs: int) -> int:
        """Return the FLOPs of a forward pass; a backward pass takes twice as many."""
        return 2 * graphs * self._width * (self._width + self._readout.width)

    def step(self, pooled: Floats, labels: Int, streams: DropoutStreams) -> tuple[Outcome, Floats]:
        """Run forward and back; return the outcome and the gradient of `pooled`, float32 [B, h]."""
        post, readout, size = self._post, self._readout, len(pooled)
        hidden = self._hidden(pooled)
        own = np.arange(size + 1, dtype=np.int32)
        kept = self._dropout.kept("kept in head", streams, self._layer, own, own[:-1], 1)
        dropped = self._dropout.apply(hidden, own[:-1], kept, "dropped in head")
        logits = self._scratch("logits", size, readout.width)
        readout.apply(dropped, logits, relu=False)
        gradient = self._scratch("logits gradient", size, readout.width)
        gradient[:] = 0
        outcome = self._score(logits, labels, gradient)
        readout.add_gradients(gradient, dropped)
        before = self._scratch("head gradient", size, self._width)
        readout.apply_back(gradient, before)
        identity = Csr(own, own[:-1], np.ones(size, np.float32), size)
        upstream = self._dropout.back(identity, before, hidden, own[:-1], kept, "hidden gradient")
        post.add_gradients(upstream, pooled)
        post.apply_back(upstream, before)
        return outcome, before

    def evaluate(self, pooled: Floats, labels: Int) -> Outcome:
        """Classify graphs without dropout; labels int64 [B]."""
        logits = self._logits(pooled)
        unused = self._scratch("logits gradient", len(labels), logits.shape[1])
        return self._score(logits, labels, unused)

    def logits(self, pooled: Floats) -> Floats:
        """Return the outputs without dropout, float32 [B, C]."""
        return self._logits(pooled)[:, : self._classes]

    def _logits(self, pooled: Floats) -> Floats:
        logits = self._scratch("logits", len(pooled), self._readout.width)
        self._readout.apply(self._hidden(pooled), logits, relu=False)
        return logits

    def _hidden(self, pooled: Floats) -> Floats:
        hidden = self._scratch("head", len(pooled), self._width)
        self._post.apply(pooled, hidden, relu=True)
        return hidden

    def _score(self, logits: Floats, labels: Int, gradient: Floats) -> Outcome:
        outcome = Outcome(np.empty(len(labels)), np.empty(len(labels), np.uint8))
        kernels.cross_entropy(logits, labels, self._classes, gradient, outcome.losses, outcome.hits)
        return outcome
