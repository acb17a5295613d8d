"""What compiled networks share: rows of the inputs, vectors pooled per graph, a head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.products import Floats, padded
from fedmpi.kernels.convolution import multiply
from fedmpi.kernels.head import FastHead, Targets
from fedmpi.kernels.linear_map import LinearMap, Loaded
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.vectors import Descent
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome

EmbeddingTerm = Callable[[Tensor], Tensor | None]
"""Returns a term of the loss from what is pooled of each graph [B, h]: a scalar, or None for none."""


class FastNetwork(ABC):
    """Compiled passes of one model shape on one CPU thread, bound to the vectors of its `FlatModel`.

    Parameters
    ----------
    hidden : int
        Columns of a hidden row.
    model : FlatModel
        On the CPU; its parameters are read, its gradient is written.
    scratch : Scratch
    """

    descends: ClassVar[bool] = False
    """Whether `descend` is there: steps of the optimizer, all in one call."""

    _inputs: LinearMap
    _head: FastHead

    def __init__(self, hidden: int, model: FlatModel, scratch: Scratch) -> None:
        self._hidden, self._width, self._scratch = hidden, padded(hidden), scratch
        self._gradient = model.gradient.numpy()

    @abstractmethod
    def prepare(self, graphs: GraphSet) -> Any:
        """Return graphs as `step` takes them, all or some: `Quotient`, `GinBatch`, `NodeBatch`, ..."""

    @abstractmethod
    def step(
        self, batch: Any, streams: DropoutStreams, term: EmbeddingTerm | None = None, *, alone: bool = False
    ) -> Outcome:
        """Run forward and backward; the model's gradient becomes that of the mean loss and the term.

        `alone`, it is the term's, and the outcome is of the loss.
        """

    def descend(
        self,
        batches: Sequence[Any],
        streams: Sequence[DropoutStreams],
        descent: Descent,
        mean: Floats,
        square: Floats,
    ) -> list[Outcome]:
        """Take a step of the optimizer for each batch; parameters, gradient and moments change in place.

        Parameters
        ----------
        batches : sequence
            Some of the same graphs each, or all of them each; one at least.
        streams : sequence of DropoutStreams
            Of each step.
        descent : Descent
            The steps' numbers.
        mean, square : float32 [trained]
            Moments of the optimizer.

        Returns
        -------
        list of Outcome
            Of each step.
        """
        raise NotImplementedError

    @abstractmethod
    def step_flops(self, batch: Any) -> int:
        """Return the FLOPs of `step`: products and sums over stored entries, forward and backward."""

    @abstractmethod
    def levels(self, graphs: GraphSet) -> Any:
        """Return graphs as `evaluate` and `embed` take them."""

    @abstractmethod
    def evaluation_flops(self, graphs: Any) -> int:
        """Return the FLOPs of `evaluate`."""

    def evaluate(self, graphs: Any, targets: Targets) -> Outcome:
        """Judge graphs without dropout, as `FastHead` takes targets."""
        return self._head.evaluate(self._pooled(graphs), targets)

    def logits(self, graphs: Any) -> Floats:
        """Return the outputs without dropout, float32 [B, C]."""
        return self._head.logits(self._pooled(graphs))

    def embed(self, graphs: Any) -> Floats:
        """Return what is pooled of each graph without dropout, float32 [B, h]."""
        return self._pooled(graphs)[:, : self._hidden]

    def _add_term(self, term: EmbeddingTerm, pooled: Floats, gradient: Floats, *, alone: bool) -> None:
        """Add a term's gradient by what is pooled, float32 [B, width], to that of the loss, or set it alone.

        The head has its gradient by then, and no other layer.
        """
        if alone:
            self._gradient[:] = 0
            gradient[:] = 0
        rows = torch.from_numpy(pooled[:, : self._hidden].copy()).requires_grad_()
        value = term(rows)
        if value is not None and value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
            assert rows.grad is not None
            gradient[:, : self._hidden] += rows.grad.numpy()

    @abstractmethod
    def _pooled(self, graphs: Any) -> Floats:
        """Return what is pooled of each graph without dropout, padded, float32 [B, width]."""

    @abstractmethod
    def _layers_to_load(self) -> Sequence[Loaded]:
        """Return what keeps values of parameters, beside inputs and head."""

    def _load(self) -> None:
        parts: list[Loaded] = [self._inputs, self._head, *self._layers_to_load()]
        for part in parts:
            part.load()

    def _input_rows(self, inputs: Floats) -> Floats:
        rows = self._scratch("input rows", len(inputs), self._width)
        self._inputs.apply(inputs, rows, relu=False)
        return rows

    def _sum(self, matrix: Csr, x: Floats, name: str) -> Floats:
        """Return a sparse matrix [n, m] times rows [m, h]."""
        sums = self._scratch(name, matrix.num_rows, self._width)
        multiply(matrix, x, sums)
        return sums
