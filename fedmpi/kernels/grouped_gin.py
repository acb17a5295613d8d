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
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding_bag

from fedmpi.graphs.packed import GraphSet, Int, pointers
from fedmpi.graphs.transfer import sent
from fedmpi.models.dropout import device_keep_bits
from fedmpi.models.flat import Slot
from fedmpi.models.options import GinOptions


@dataclass(frozen=True)
class Bags:
    """Sums of rows: bag b sums the rows ``members[starts[b]:starts[b + 1]]``, in order."""

    members: Tensor
    starts: Tensor

    def sum(self, x: Tensor) -> Tensor:
        """Return the sums, [bags, h]."""
        return embedding_bag(self.members, x, self.starts, mode="sum", include_last_offset=True)


class _Sum(torch.autograd.Function):
    """Sums over bags, with the transposed bags at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, forward: Bags, backward: Bags, x: Tensor) -> Tensor:
        ctx.backward_bags = backward
        return forward.sum(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.backward_bags.sum(gradients[0].contiguous())


@dataclass(frozen=True)
class GroupBatch:
    """One batch of each of k clients, padded to n nodes and B graphs.

    Attributes
    ----------
    x : float32 [k, n, d]
    closed, closed_back, pooling, pooling_back : Bags
        Over the rows of [k n, h]: closed neighbourhoods, nodes of each of k B graphs, and their transposes.
    labels : int64 [k, B]
    weights : float32 [k, B]
        1 / (graphs of the client), 0 for padding: the weighted sum of losses is the client's mean.
    sizes : tuple of (int, int, int)
        Graphs, nodes and directed edges of each client.
    """

    x: Tensor
    closed: Bags
    closed_back: Bags
    pooling: Bags
    pooling_back: Bags
    labels: Tensor
    weights: Tensor
    sizes: tuple[tuple[int, int, int], ...]


def group_batch(parts: Sequence[GraphSet | None], device: torch.device) -> GroupBatch:
    """Combine one batch of each client; None for a client that does not take this step."""
    given = [part for part in parts if part is not None]
    width = given[0].feature_rows.shape[1]
    nodes = max(part.topology.num_nodes for part in given)
    graphs = max(part.num_graphs for part in given)
    x = torch.zeros(len(parts), nodes, width)  # aligned, unlike NumPy's: products may round by alignment
    labels = np.zeros((len(parts), graphs), np.int64)
    weights = np.zeros((len(parts), graphs), np.float32)
    receivers, senders, pooled, sizes = [], [], [], []
    for k, part in enumerate(parts):
        if part is None:
            sizes.append((0, 0, 0))
            continue
        topology, first = part.topology, k * nodes
        x[k, : topology.num_nodes] = torch.from_numpy(part.features)
        labels[k, : part.num_graphs], weights[k, : part.num_graphs] = part.labels, 1 / part.num_graphs
        own = np.arange(topology.num_nodes)
        receivers += [first + np.repeat(own, np.diff(topology.row_ptr)), first + own]
        senders += [first + np.asarray(topology.columns), first + own]
        pooled.append(k * graphs + np.repeat(np.arange(part.num_graphs), np.diff(topology.graph_ptr)))
        sizes.append((part.num_graphs, topology.num_nodes, topology.num_edges))
    everyone = np.concatenate([k * nodes + np.arange(size[1]) for k, size in enumerate(sizes)])
    to, of, rows = len(parts) * nodes, len(parts) * graphs, np.concatenate(pooled)
    into, outof = np.concatenate(receivers), np.concatenate(senders)
    return GroupBatch(
        x=sent(x, device),
        closed=_bags(into, outof, to, device),
        closed_back=_bags(outof, into, to, device),
        pooling=_bags(rows, everyone, of, device),
        pooling_back=_bags(everyone, rows, to, device),
        labels=sent(torch.from_numpy(labels), device),
        weights=sent(torch.from_numpy(weights), device),
        sizes=tuple(sizes),
    )


def _bags(bag: Int, member: Int, count: int, device: torch.device) -> Bags:
    order = np.lexsort((member, bag))
    starts = pointers(np.bincount(bag, minlength=count))
    return Bags(sent(torch.from_numpy(member[order]), device), sent(torch.from_numpy(starts), device))


class GroupedGin:
    """The function of `fedmpi.models.gin` for k clients, from their flat parameter vectors.

    Parameters
    ----------
    options : GinOptions
    slots : sequence of Slot
        Places of the tensors in a parameter vector.
    length : int
        Length of a parameter vector, padding included.
    """

    def __init__(self, options: GinOptions, slots: Sequence[Slot], length: int) -> None:
        self._options, self._slots = options, tuple(slots)
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
        (count, nodes, _), graphs, hidden = batch.x.shape, batch.labels.shape[1], self._options.hidden
        x = _linear(batch.x, maps[0])
        for layer in range(self._options.layers):
            first, second = maps[1 + 2 * layer : 3 + 2 * layer]
            summed = _sum(batch.closed, batch.closed_back, x)
            inner = torch.relu(_linear(summed.view(count, nodes, hidden), first))
            x = self._drop(torch.relu(_linear(inner, second)), streams, layer)
        pooled = _sum(batch.pooling, batch.pooling_back, x)
        post = torch.relu(_linear(pooled.view(count, graphs, hidden), maps[-2]))
        return _linear(self._drop(post, streams, self._options.layers), maps[-1])

    def _drop(self, x: Tensor, streams: Tensor | None, layer: int) -> Tensor:
        drop = self._options.dropout
        if streams is None or drop == 0.0:
            return x
        keep = device_keep_bits(streams[:, layer], x[0].numel(), drop)
        return x * (keep.view(x.shape).to(x.dtype) * (1.0 / (1.0 - drop)))


def _sum(bags: Bags, back: Bags, x: Tensor) -> Tensor:
    """Return the sums of the rows of x [k, n, h] over bags, [bags, h]."""
    return _Sum.apply(bags, back, x.flatten(0, 1))  # type: ignore[no-any-return, no-untyped-call]


def losses(logits: Tensor, batch: GroupBatch) -> Tensor:
    """Return the negative log-likelihood of every graph, float32 [k, B]."""
    flat = cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")
    return flat.view(batch.labels.shape)


def _linear(x: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = weights
    return torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))
