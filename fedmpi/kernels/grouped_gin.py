"""GIN of several clients at once: one batched product per linear map, on any device.

Each client has parameters and graphs of its own; node and graph numbers are
padded to the largest of the group, and padded rows are read by nobody. Sums over
neighbours and graphs go through bags of rows, each summed in a fixed order by one
thread, forwards and backwards, so that results do not depend on timing. A pass
brings nothing back from the device, and its shapes are fixed by its batch: it can
be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.graphs.sparse import linear
from fedmpi.kernels.grouped_batches import GroupBatch
from fedmpi.kernels.grouped_losses import losses, predictions
from fedmpi.kernels.targets import CLASSES
from fedmpi.models.dropout import device_keep_bits
from fedmpi.models.flat import Slot
from fedmpi.models.options import GinOptions

_CUTS = 8
"""A GPU sums a weight's gradient over nodes in this many pieces at once; a single sum is too slow."""


class _Linear(torch.autograd.Function):
    """A batched product and bias; the weight's gradient is summed in pieces, then over them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        (x, weight), gradient = ctx.saved_tensors, gradients[0]
        count, rows, _ = x.shape
        pieces = [each.reshape(count * _CUTS, rows // _CUTS, each.shape[2]) for each in (gradient, x)]
        of_weight = (
            torch.bmm(pieces[0].transpose(1, 2), pieces[1]).view(count, _CUTS, *weight.shape[1:]).sum(1)
        )
        of_x = torch.bmm(gradient, weight) if ctx.needs_input_grad[0] else None
        return of_x, of_weight, gradient.sum(1)


class GroupedGin:
    """The function of `fedmpi.models.gin` for k clients, from their flat parameter vectors.

    Parameters
    ----------
    options : GinOptions
    slots : sequence of Slot
        Places of the tensors in a parameter vector.
    length : int
        Length of a parameter vector, padding included.
    kind : int, optional
        Of the labels: `CLASSES`, `LABELS` or `NUMBERS`.
    """

    def __init__(self, options: GinOptions, slots: Sequence[Slot], length: int, kind: int = CLASSES) -> None:
        self._options, self._slots, self._kind = options, tuple(slots), kind
        starts = [slot.start for slot in slots]
        self._pieces = np.diff([*starts, length]).tolist()

    def logits(self, rows: Tensor, batch: GroupBatch, streams: Tensor | None) -> Tensor:
        """Return outputs [k, B, C].

        Parameters
        ----------
        rows : float32 [k, length]
        batch : GroupBatch
        streams : int64 [k, layers + 1], optional
            Keys of each client's dropout streams; None in evaluation.
        """
        tensors = [
            piece[:, : slot.stop - slot.start].reshape(len(rows), *slot.shape)
            for slot, piece in zip(self._slots, torch.split(rows, self._pieces, dim=1), strict=True)
        ]
        maps = list(zip(tensors[::2], tensors[1::2], strict=True))
        count, nodes, graphs = batch.sizes.clients, batch.sizes.nodes, batch.sizes.graphs
        hidden = self._options.hidden
        x = _linear(batch.x, maps[0])
        for layer in range(self._options.layers):
            first, second = maps[1 + 2 * layer : 3 + 2 * layer]
            summed = linear(batch.closed.sum, batch.closed_back.sum, x.flatten(0, 1))
            inner = torch.relu(_linear(summed.view(count, nodes, hidden), first))
            x = self._drop(torch.relu(_linear(inner, second)), streams, layer)
        graph_of = batch.graph_of
        pooled = linear(batch.pooling.sum, lambda rows: rows.index_select(0, graph_of), x.flatten(0, 1))
        post = torch.relu(_linear(pooled.view(count, batch.sizes.bags, hidden)[:, :graphs], maps[-2]))
        return _linear(self._drop(post, streams, self._options.layers), maps[-1])

    def judge(self, outputs: Tensor, batch: GroupBatch) -> tuple[Tensor, Tensor]:
        """Return the graphs' losses, [k, B], and what they are scored by: see `predictions`."""
        found = predictions(self._kind, outputs, batch.labels)
        return losses(self._kind, outputs, batch.labels), found

    def _drop(self, x: Tensor, streams: Tensor | None, layer: int) -> Tensor:
        drop = self._options.dropout
        if streams is None or drop == 0.0:
            return x
        keep = device_keep_bits(streams[:, layer], x[0].numel(), drop)
        return x * (keep.view(x.shape).to(x.dtype) * (1.0 / (1.0 - drop)))


def _linear(x: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = weights
    if x.device.type != "cpu" and x.shape[1] % _CUTS == 0:
        return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    return torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))
