"""FedGraphNN's molecule models of several clients at once: the functions of `fedmpi.models.fedgraphnn`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import elu

from fedmpi.kernels.grouped_attention import attended
from fedmpi.kernels.grouped_batches import GroupBatch
from fedmpi.kernels.grouped_layers import Weights, dropped, linear
from fedmpi.kernels.grouped_network import GroupedNetwork
from fedmpi.kernels.grouped_sums import GroupSums
from fedmpi.kernels.targets import CLASSES
from fedmpi.models import options as models
from fedmpi.models.dropout import device_keep_bits, device_words, fixed_keys
from fedmpi.models.flat import FlatModel

_FANOUT = 2


class GroupedMolecules(GroupedNetwork):
    """Two graph layers, and a readout of every node, averaged.

    GraphSAGE's evaluation draws the neighbours that torch's kernels draw for up to 1,024 graphs of a client;
    these evaluate more in parts, and draw anew in each.
    """

    def __init__(self, options: models.FedGraphNNOptions, model: FlatModel, kind: int = CLASSES) -> None:
        super().__init__(options, model, kind)
        self.by_entry = not isinstance(options, models.FedGraphNNGcnOptions)
        if isinstance(options, models.FedGraphNNGatOptions):
            self.streams = 2 * options.layers

    def _outputs(self, weights: Weights, batch: GroupBatch, streams: Tensor | None) -> Tensor:
        sums, x = GroupSums(batch), batch.x
        match self._options:
            case models.FedGraphNNGatOptions():
                nodes = self._attended(weights, sums, x, streams)
            case models.FedGraphNNSageOptions():
                nodes = self._sampled(weights, batch, x, streams)
            case _:
                nodes = self._propagated(weights, sums, x, streams)
        read = torch.relu(weights.linear("first", torch.cat([x, nodes], dim=2)))
        return weights.linear("last", sums.mean_graphs(torch.relu(weights.linear("second", read))))

    def _propagated(self, weights: Weights, sums: GroupSums, x: Tensor, streams: Tensor | None) -> Tensor:
        x = _projected(sums.normalised(x), weights["conv.0.weight"])
        x = dropped(x, streams, 0, self._options.dropout)
        return sums.normalised(_projected(x, weights["conv.1.weight"]))

    def _attended(self, weights: Weights, sums: GroupSums, x: Tensor, streams: Tensor | None) -> Tensor:
        options, entries = self._options, sums.entries
        for layer, heads in enumerate((options.heads, 1)):
            x, own = dropped(x, streams, 2 * layer, options.dropout), weights.part(f"conv.{layer}")
            states = _projected(x, own["project.weight"]).view(*x.shape[:2], heads, -1)
            dropout = streams if streams is None else (streams[:, 2 * layer + 1], options.dropout)
            sides = own["attend.receiver"], own["attend.sender"]
            x = elu(attended(entries, states, sides, options.slope, dropout))
        return x

    def _sampled(self, weights: Weights, batch: GroupBatch, x: Tensor, streams: Tensor | None) -> Tensor:
        draws = _Draws(batch, streams)
        near, far = draws.near_and_far()
        asked = torch.cat([draws.nodes, near.flatten(1)], dim=1)
        rows = x.flatten(0, 1)
        x = torch.cat([rows[asked], rows[far].mean(dim=2)], dim=2)
        x = torch.relu(_projected(x, weights["conv.0.weight"]))
        if streams is not None and self._options.dropout:
            x = draws.dropped(x, streams[:, 0], self._options.dropout)
        own, around = x[:, : near.shape[1]], x[:, near.shape[1] :]
        around = around.reshape(*near.shape, x.shape[2]).mean(dim=2)
        return torch.relu(_projected(torch.cat([own, around], dim=2), weights["conv.1.weight"]))


def _projected(x: Tensor, weight: Tensor) -> Tensor:
    """Return rows [k, n, in] by matrices [k, in, out]."""
    return linear(x, weight.transpose(1, 2))


class _Draws:
    """Neighbours that nodes draw with replacement, by the words that each client's nodes would draw alone.

    A client's nodes are asked first, then those that they drew.

    Parameters
    ----------
    batch : GroupBatch
        By entry.
    streams : int64 [k, *], optional
        None in evaluation.

    Attributes
    ----------
    nodes : int64 [k, n]
        Rows of the clients' nodes.
    places : int64 [k, 3 n]
        Among all that are asked of a client without padding.
    """

    def __init__(self, batch: GroupBatch, streams: Tensor | None) -> None:
        clients, nodes, device = batch.sizes.clients, batch.sizes.nodes, batch.block.device
        if streams is None:
            keys = fixed_keys(3).view(np.int64).tolist()
            streams = torch.stack([torch.full((clients,), key, device=device) for key in keys], dim=1)
        self._closed, self._streams = batch.closed, streams
        self.nodes = torch.arange(clients * nodes, device=device).view(clients, nodes)
        own = torch.arange(nodes, device=device).expand(clients, nodes)
        counts = (batch.closed.lengths.view(clients, nodes) > 0).sum(dim=1, keepdim=True)
        drawn = counts + torch.arange(_FANOUT * nodes, device=device)
        self.places = torch.cat([own, drawn], dim=1)

    def near_and_far(self) -> tuple[Tensor, Tensor]:
        """Return what each node draws, [k, n, 2], and what it and those draw, [k, 3 n, 2]."""
        near = self._drawn(self.nodes, self.places[:, : self.nodes.shape[1]], 1)
        asked = torch.cat([self.nodes, near.flatten(1)], dim=1)
        return near, self._drawn(asked, self.places, 2)

    def _drawn(self, nodes: Tensor, places: Tensor, layer: int) -> Tensor:
        """Return rows of neighbours, each one by a word modulo their number, [k, m, 2]."""
        numbers = places.unsqueeze(2) * _FANOUT + torch.arange(_FANOUT, device=places.device)
        words = device_words(self._streams[:, layer, None, None], numbers)
        degrees = self._closed.lengths.long()[nodes].clamp(min=1).unsqueeze(2)
        half = (words >> 1) & (2**63 - 1)  # torch's words have a sign
        chosen = (half % degrees * 2 + (words & 1)) % degrees
        entries = self._closed.starts.long()[nodes].unsqueeze(2) + chosen
        members = self._closed.members
        return members[entries.clamp(max=len(members) - 1)].long()

    def dropped(self, x: Tensor, streams: Tensor, drop: float) -> Tensor:
        """Return the rows of all that are asked, [k, 3 n, h], after dropout by streams [k]."""
        clients, asked, width = x.shape
        keep = device_keep_bits(streams, asked * width, drop).view(clients * asked, width)
        rows = self.places + torch.arange(0, clients * asked, asked, device=x.device).unsqueeze(1)
        return x * (keep[rows].to(x.dtype) * (1.0 / (1.0 - drop)))
