"""NeighGen, the generator of missing neighbours of FedSage+ (Zhang et al., NeurIPS 2021, Section 4).

An encoder gives every node v of an impaired graph a state z_v. From it *dGen* predicts how many neighbours
are missing, and *fGen* the features of each of them:

    n_v = relu(a z_v + b),   x_v = tanh(MLP(z_v + N(0, 1)))   of which the first round(n_v) of P rows count

A classifier reads the graph mended with these nodes. The losses are L^d of the numbers, L^f of the features
and L^c of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import relu, smooth_l1_loss

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import Int
from fedmpi.models.generator import Generator
from fedmpi.seeds import Purpose, generator, keep_bits, key

Drop = Callable[[Tensor, int], Tensor]
"""Dropout of the states of a layer, given its number."""

_LAYER_OF_FEATURES, _FIRST_OF_CLASSIFIER = 1, 2
"""Numbers of dropout layers; 0 is the encoder's. The classifier has one of nodes, one of generated nodes."""


@dataclass(frozen=True)
class Draws:
    """Noise and dropout of one epoch: functions of (seed, client, epoch)."""

    seed: int
    client: int
    epoch: int

    def noise(self, nodes: int, width: int) -> Tensor:
        """Return standard normal noise, float32 [nodes, width]."""
        stream = key(self.seed, Purpose.MENDING, self.client, self.epoch, 0)
        return torch.from_numpy(generator(stream).standard_normal((nodes, width), dtype=np.float32))

    def dropout(self, share: float) -> Drop:
        """Return dropout of a share of the elements."""

        def drop(x: Tensor, layer: int) -> Tensor:
            if share == 0.0:
                return x
            stream = key(self.seed, Purpose.MENDING, self.client, self.epoch, 1 + layer)
            keep = torch.from_numpy(keep_bits(stream, x.numel(), share)).view(x.shape)
            return x * keep.to(x.device, x.dtype).mul_(1.0 / (1.0 - share))

        return drop


def no_dropout(x: Tensor, layer: int) -> Tensor:
    """Return x, as in evaluation."""
    return x


class Sage(nn.Module):
    """Two GraphSAGE layers with means of neighbours, ReLU and dropout between; [N, d] to [N, out]."""

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(width, hidden), nn.Linear(hidden, out)])
        self.mean = nn.ModuleList([nn.Linear(width, hidden, bias=False), nn.Linear(hidden, out, bias=False)])

    def forward(self, graph: Batch, x: Tensor, drop: Drop) -> Tensor:
        """Return the nodes' states."""
        state = relu(self.own[0](x) + graph.mean_neighbours(self.mean[0](x)))
        state = drop(state, 0)
        return self.own[1](state) + graph.mean_neighbours(self.mean[1](state))  # type: ignore[no-any-return]

    def mended(self, graph: Batch, x: Tensor, new: Tensor, neighbours: Tensor, drop: Drop) -> Tensor:
        """Return the states of the graph's own nodes, [N, out], with generated nodes joined to it.

        Parameters
        ----------
        graph : Batch
            Without these nodes.
        x : float32 [N, d]
        new : float32 [G, d]
            Features of generated nodes.
        neighbours : int64 [G]
            The node of the graph that each is joined to.
        drop : Drop
        """
        sent, sent_new = self.mean[0](x), self.mean[0](new)
        state = relu(self.own[0](x) + _means(graph, sent, sent_new, neighbours))
        state_new = relu(self.own[0](new) + sent.index_select(0, neighbours))
        state, state_new = drop(state, _FIRST_OF_CLASSIFIER), drop(state_new, _FIRST_OF_CLASSIFIER + 1)
        means = _means(graph, self.mean[1](state), self.mean[1](state_new), neighbours)
        return self.own[1](state) + means  # type: ignore[no-any-return]


def _means(graph: Batch, x: Tensor, new: Tensor, neighbours: Tensor) -> Tensor:
    """Return each node's mean over its neighbours and the generated nodes joined to it, [N, h]."""
    degrees = torch.from_numpy(np.diff(graph.topology.row_ptr).astype(np.float32))[:, None].to(x.device)
    counts = torch.bincount(neighbours.cpu(), minlength=len(x)).to(x.device, x.dtype)[:, None]
    sums = (graph.mean_neighbours(x) * degrees).index_add(0, neighbours, new)
    return sums / (degrees + counts).clamp(min=1)


class NeighGen(nn.Module):
    """Encoder, dGen, classifier and fGen, which comes last, so that its parameters end the flat vector."""

    def __init__(self, settings: Generator, width: int, classes: int) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = Sage(width, settings.hidden, settings.latent)
        self.number = nn.Linear(settings.latent, 1)
        self.classifier = Sage(width, settings.hidden, classes)
        first, second = settings.generator_hidden
        layers = [nn.Linear(settings.latent, first), nn.Linear(first, second)]
        self.features = nn.ModuleList([*layers, nn.Linear(second, settings.most * width)])

    def states(self, graph: Batch, x: Tensor, drop: Drop) -> tuple[Tensor, Tensor]:
        """Return z [N, latent] and dGen's numbers [N]."""
        z = self.encoder(graph, x, drop)
        return z, relu(self.number(z))[:, 0]

    def counts(self, numbers: Tensor) -> Tensor:
        """Return how many neighbours each node gets, int64 [N]: dGen's number, rounded, at most P."""
        rounded = torch.floor(torch.nan_to_num(numbers.detach(), nan=self.settings.most) + 0.5)
        return rounded.clamp(0, self.settings.most).long()

    def neighbours(self, z: Tensor, counts: Tensor, draws: Draws, drop: Drop) -> Tensor:
        """Return fGen's features of all generated nodes, [G, d]: those of the first node, then of the next.

        Parameters
        ----------
        z : float32 [N, latent]
        counts : int64 [N]
            Neighbours of each node, of sum G.
        draws : Draws
            Of the noise; a node's is the same whatever the other nodes' numbers are.
        drop : Drop
        """
        nodes = counts.nonzero()[:, 0]
        noisy = (z + draws.noise(*z.shape).to(z.device)).index_select(0, nodes)
        state = relu(self.features[1](relu(self.features[0](noisy))))
        rows = torch.tanh(self.features[2](drop(state, _LAYER_OF_FEATURES)))
        most = self.settings.most
        wanted = torch.arange(most, device=z.device) < counts.index_select(0, nodes)[:, None]
        each = rows.view(len(nodes) * most, rows.shape[1] // most)
        return each.index_select(0, wanted.view(-1).nonzero()[:, 0])


def number_loss(numbers: Tensor, missing: Tensor) -> Tensor:
    """Return the mean of the smooth L1 distance of predicted and true numbers, L^d."""
    return smooth_l1_loss(numbers, missing.to(numbers.dtype))


def feature_scale(settings: Generator, nodes: int, width: int) -> float:
    """Return what a sum of squared differences is multiplied by in L^f: 1 / (nodes P d).

    The paper divides by the nodes of the impaired graph alone. The released code takes means over P and d,
    too, and its weights of the losses are for these.
    """
    return 1.0 / (nodes * settings.most * width)


def feature_loss(generated: Tensor, targets: Tensor, scale: float) -> Tensor:
    """Return the scaled sum of squared differences of rows [*, d], L^f."""
    return (generated - targets).square().sum() * scale


def nearest_neighbours(
    generated: Tensor, owners: Int, hidden_ptr: Int, hidden: Int, features: Tensor
) -> tuple[Int, Int]:
    """Return the generated rows whose node has hidden neighbours, and the nearest of these, for L^f.

    Parameters
    ----------
    generated : float32 [G, d]
    owners : int64 [G]
        Node of each row.
    hidden_ptr, hidden : int64
        Hidden neighbours of each node: see `fedmpi.graphs.mended.Impaired`.
    features : float32 [M, d]
        Of the whole graph, which `hidden` numbers.

    Returns
    -------
    rows, nearest : int64 [k]
        Of equal distances the first in `hidden`.
    """
    counts = np.diff(hidden_ptr)[owners]
    rows = np.repeat(np.arange(len(owners)), counts)
    starts = np.repeat(hidden_ptr[owners] - (np.cumsum(counts) - counts), counts)
    candidates = hidden[np.arange(len(rows)) + starts]
    device = generated.device
    chosen, others = torch.from_numpy(rows).to(device), torch.from_numpy(candidates).to(device)
    pairs = generated.detach().index_select(0, chosen) - features.index_select(0, others)
    distances = pairs.square().sum(dim=1).cpu().numpy()
    order = np.lexsort((distances, rows))
    first = np.unique(rows[order], return_index=True)[1]
    best = order[first]
    return rows[best], candidates[best]


@torch.no_grad()
def differences_to_nearest(rows: Tensor, features: Tensor) -> Tensor:
    """Return each row minus the row of `features` that is nearest, [R, d].

    This is half the gradient of the squared distance, by the row: what another client adds to L^f.
    """
    distances = features.square().sum(dim=1) - 2 * rows @ features.T
    return rows - features.index_select(0, distances.argmin(dim=1))
