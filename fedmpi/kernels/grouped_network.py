"""Networks of several clients at once: one batched product per linear map, on any device.

Each client has parameters and graphs of its own; node and example numbers are
padded to the largest of the group, and padded rows are read by nobody. A pass
brings nothing back from the device, and its shapes are fixed by its batch: it can
be captured in a CUDA graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.kernels.grouped_batches import GroupBatch
from fedmpi.kernels.grouped_convolutions import convolved
from fedmpi.kernels.grouped_layers import Weights, dropped, factors
from fedmpi.kernels.grouped_losses import losses, predictions
from fedmpi.kernels.grouped_sums import GroupSums
from fedmpi.kernels.targets import CLASSES
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GatOptions, GinOptions, MessagePassingOptions


class GroupedNetwork(ABC):
    """The function of a network for k clients, from their flat parameter vectors.

    Parameters
    ----------
    options : ModelOptions
    model : FlatModel
        Of one client; says where the tensors lie in a parameter vector.
    kind : int, optional
        Of the labels: `CLASSES`, `LABELS` or `NUMBERS`.
    of_nodes : bool, optional
        Whether examples are nodes, whose predicted classes are asked for.

    Attributes
    ----------
    streams : int
        Dropout streams of a step.
    by_entry : bool
        Whether it reads `GroupGraphs` by entry.
    """

    streams: int
    by_entry: bool

    def __init__(
        self, options: Any, model: FlatModel, kind: int = CLASSES, *, of_nodes: bool = False
    ) -> None:
        self._options, self._slots, self._kind = options, model.slots, kind
        self.of_nodes = of_nodes
        self._pieces = np.diff([*(slot.start for slot in model.slots), model.length]).tolist()
        self.streams = options.layers + 1
        self.by_entry = isinstance(options, GatOptions)

    def logits(self, rows: Tensor, batch: GroupBatch, streams: Tensor | None) -> Tensor:
        """Return outputs [k, B, C].

        Parameters
        ----------
        rows : float32 [k, length]
        batch : GroupBatch
        streams : int64 [k, `streams`], optional
            Keys of each client's dropout streams; None in evaluation.
        """
        tensors = {
            slot.name: piece[:, : slot.stop - slot.start].reshape(len(rows), *slot.shape)
            for slot, piece in zip(self._slots, torch.split(rows, self._pieces, dim=1), strict=True)
        }
        return self._outputs(Weights(tensors), batch, streams)

    @abstractmethod
    def _outputs(self, weights: Weights, batch: GroupBatch, streams: Tensor | None) -> Tensor:
        """Return outputs [k, B, C]."""

    def judge(self, outputs: Tensor, batch: GroupBatch) -> tuple[Tensor, Tensor]:
        """Return the examples' losses, [k, B], and what they are scored by: see `predictions`."""
        found = predictions(self._kind, outputs, batch.labels, named=self.of_nodes)
        return losses(self._kind, outputs, batch.labels), found


class GroupedGraphNetwork(GroupedNetwork):
    """GIN without normalisation, and `fedmpi.models.message_passing` with a head."""

    _options: GinOptions | MessagePassingOptions

    def _outputs(self, weights: Weights, batch: GroupBatch, streams: Tensor | None) -> Tensor:
        options, sums, x = self._options, GroupSums(batch), weights.linear("pre", batch.x)
        layers, head, by_mean = options.layers, 2, False
        if isinstance(options, MessagePassingOptions):
            layers, head, by_mean = options.modules, options.head_layers, options.pooling == "mean"
        kept = None
        if streams is not None and options.dropout:
            kept = factors(streams[:, :layers], x.shape[1:], options.dropout)
        for layer in range(layers):
            x = torch.relu(convolved(options, weights.part(f"conv.{layer}"), sums, x))
            x = x if kept is None else x * kept[:, layer]
        pooled = sums.mean_graphs(x) if by_mean and not self.of_nodes else sums.sum_graphs(x)
        if head == 1:
            return weights.linear("readout", pooled)
        post = torch.relu(weights.linear("post", pooled))
        return weights.linear("readout", dropped(post, streams, layers, options.dropout))
