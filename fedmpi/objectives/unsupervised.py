"""Unsupervised objectives: what each computes of a batch's views, and how it gives vectors to graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.refinement.colours import Rows
from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.kernels import losses
from fedmpi.kernels.feed_forward import FastFeedForward
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.encoder import Encoding, GinEncoder, XavierLinear
from fedmpi.models.flat import FlatModel
from fedmpi.models.mvgrl import MvgrlEncoder, PairEncoding
from fedmpi.models.options import MODELS, GinEncoderOptions, ModelOptions, Shape
from fedmpi.objectives import contrast
from fedmpi.objectives.contrast import jensen_shannon
from fedmpi.objectives.options import (
    OBJECTIVES,
    FclgNodesOptions,
    FclgOptions,
    IntraKlOptions,
    IntraMseOptions,
    IntraOptions,
    ObjectiveOptions,
)

_HEADS = ("node_head", "graph_head")
"""InfoGraph's heads in `InfoGraphNetwork`."""


@dataclass(frozen=True)
class Views:
    """A batch as it is, and its graphs under other matrices where the objective asks for them.

    For compiled kernels the views are `Rows`; of convolutions that are never trained `fixed` is what they
    say of the graphs, in place of the other views.
    """

    original: Batch | Rows
    diffused: WeightedBatch | Rows | None = None
    adjacency: WeightedBatch | None = None
    fixed: PairEncoding | None = None


@dataclass(frozen=True)
class Network:
    """What an objective trains.

    Attributes
    ----------
    module : torch.nn.Module
        Holds the parameters.
    encoder : GinEncoder, FastEncoder or None
        Encodes for objectives on one encoder: the module, or compiled kernels with its parameters.
    heads : tuple of callables
        InfoGraph's for nodes and graphs, of either kind.
    """

    module: nn.Module
    encoder: Any
    heads: tuple[Callable[[Tensor], Tensor], ...] = ()

    @classmethod
    def of(cls, module: nn.Module) -> Network:
        """Return the network that torch runs."""
        heads = (module.node_head, module.graph_head) if isinstance(module, InfoGraphNetwork) else ()
        return cls(module, module if hasattr(module, "encode") else None, heads)

    @classmethod
    def compiled(cls, model: FlatModel, encoder: Any, scratch: Scratch) -> Network:
        """Return the network that compiled kernels run."""
        names = _HEADS if isinstance(model.module, InfoGraphNetwork) else ()
        return cls(model.module, encoder, tuple(FastFeedForward(model, name, scratch) for name in names))

    def encode(self, batch: Any, *, training: bool) -> Encoding:
        """Encode one view, by the batch's own moments if `training`."""
        found: Encoding = self.encoder.encode(batch, training=training)
        return found


@dataclass(frozen=True)
class Frozen:
    """What frozen copies say of a batch's original view; None where not asked for or not there yet.

    Attributes
    ----------
    received : float32 [n, d]
        What the received model says of the graphs (or nodes).
    difference : float32 [n, d]
        `contrast.apart` of the received and the previous model.
    """

    received: Tensor | None = None
    difference: Tensor | None = None


class OneEncoder:
    """Base of local losses: those of an encoder such as `GinEncoder`, by whose vectors graphs are clustered.

    Attributes
    ----------
    needs_received, needs_previous : bool
        Which frozen copies of the model it contrasts with.
    by_node : bool
        Whether it contrasts what they say of nodes, not of graphs.
    reads_nodes : bool
        Whether it reads the vectors of nodes.
    embeds_views : bool
        Whether the vectors of graphs are also those of their other views.
    """

    needs_received = False
    needs_previous = False
    by_node = False
    reads_nodes = False
    embeds_views = False

    def __init__(self, options: ObjectiveOptions) -> None:
        self.options = options

    def loss(self, network: Network, views: Views, frozen: Frozen) -> Tensor:
        """Return the loss of a batch, a scalar."""
        raise NotImplementedError

    def vectors(self, network: Network, views: Views) -> Tensor:
        """Return the vectors of the graphs, [B, d], in evaluation: the encoder's of the original view."""
        return network.encode(views.original, training=False).graphs

    def contrasted(self, network: Network, batch: Batch | Rows) -> Tensor:
        """Return what a frozen copy says of a batch's nodes or graphs, [n, d], statistics as they are."""
        found = network.encode(batch, training=False)
        return found.nodes if self.by_node else found.graphs


class FeedForward(nn.Module):
    """InfoGraph's head: three times Linear and ReLU, and a Linear beside them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.main = nn.ModuleList(XavierLinear(width, width) for _ in range(3))
        self.shortcut = XavierLinear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map [n, d] to [n, d]."""
        hidden = x
        for linear in self.main:
            hidden = relu(linear(hidden))
        return hidden + self.shortcut(x)  # type: ignore[no-any-return]


class InfoGraphNetwork(GinEncoder):
    """The encoder with InfoGraph's heads for nodes and graphs."""

    def __init__(self, options: GinEncoderOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        self.node_head = FeedForward(options.dimension)
        self.graph_head = FeedForward(options.dimension)


class InfoGraph(OneEncoder):
    """Sun, Hoffman, Verma and Tang 2020, Eq. 3 to 5, without prior."""

    reads_nodes = True

    def loss(self, network: Network, views: Views, frozen: Frozen) -> Tensor:
        """Return the negative bound between nodes and graphs."""
        batch, (node_head, graph_head) = views.original, network.heads
        found = network.encode(batch, training=True)
        nodes, graphs = node_head(found.nodes), graph_head(found.graphs)
        if isinstance(batch, Batch):
            return jensen_shannon(nodes, graphs, batch.graph_of_node)
        assert batch.node_classes is not None
        return losses.jensen_shannon(nodes, graphs, batch.node_classes.pooling.transposed)


class Mvgrl(OneEncoder):
    """Hassani and Khasahmadi 2020: nodes of each view against graphs of the other, an encoder for each."""

    reads_nodes = True
    embeds_views = True

    def loss(self, network: Network, views: Views, frozen: Frozen) -> Tensor:
        """Return the sum of both views' negative bounds."""
        module = network.module
        assert isinstance(module, MvgrlEncoder) and isinstance(views.original, Batch)
        pair = module.heads(self._convolved(module, views))
        owner = views.original.graph_of_node
        first = jensen_shannon(pair.adjacency.nodes, pair.diffused.graphs, owner)
        return first + jensen_shannon(pair.diffused.nodes, pair.adjacency.graphs, owner)

    def vectors(self, network: Network, views: Views) -> Tensor:
        """Return the sum of both views' graph vectors."""
        module = network.module
        assert isinstance(module, MvgrlEncoder)
        return module.graph_vectors(self._convolved(module, views))

    @staticmethod
    def _convolved(module: MvgrlEncoder, views: Views) -> PairEncoding:
        if views.fixed is not None:
            return views.fixed
        first, second = views.adjacency, views.diffused
        assert isinstance(first, WeightedBatch) and isinstance(second, WeightedBatch)
        return module.convolve(first, second)


class Intra(OneEncoder):
    """Eq. 6 alone, and with the second term of the variants that have one."""

    options: IntraOptions | FclgOptions | FclgNodesOptions | IntraKlOptions | IntraMseOptions

    def __init__(self, options: ObjectiveOptions) -> None:
        super().__init__(options)
        self.needs_received = not isinstance(options, IntraOptions)
        self.needs_previous = isinstance(options, FclgOptions | FclgNodesOptions)
        self.by_node = self.reads_nodes = isinstance(options, FclgNodesOptions)

    def loss(self, network: Network, views: Views, frozen: Frozen) -> Tensor:
        """Return Eq. 9."""
        assert views.diffused is not None
        local = network.encode(views.original, training=True)
        other = network.encode(views.diffused, training=True)
        o = self.options
        loss = contrast.intra(local.graphs, other.graphs, o.temperature, normalised=o.normalise)
        if isinstance(o, IntraOptions):
            return loss
        return loss + o.inter_weight * self._second_term(local, frozen)

    def _second_term(self, local: Encoding, frozen: Frozen) -> Tensor | float:
        """Return the inter-contrastive loss or what stands in its place.

        As long as there is no previous model but the received one, Eq. 7 is log 2 whatever the
        parameters: no frozen copy is asked then.
        """
        match self.options:
            case IntraKlOptions(inter_temperature=tau) if frozen.received is not None:
                return contrast.divergence(local.graphs, frozen.received, tau)
            case IntraMseOptions(inter_normalise=normalise) if frozen.received is not None:
                return contrast.squared_distance(local.graphs, frozen.received, normalised=normalise)
            case FclgOptions(inter_temperature=tau) | FclgNodesOptions(inter_temperature=tau):
                if frozen.difference is None:
                    return contrast.LOG_2
                if not self.by_node:
                    return contrast.inter(local.graphs, frozen.difference, tau)
                if local.counts is None:
                    return contrast.inter(local.nodes, frozen.difference, tau)
                return losses.inter(local.nodes, frozen.difference, local.counts, tau)
        raise AssertionError(self.options.name)


def network_of(objective: ObjectiveOptions, model: ModelOptions, shape: Shape) -> nn.Module:
    """Return the module that the objective trains, without drawing from torch's global generator's stream.

    Raises
    ------
    BadInput
        A plug-in makes none.
    """
    guards = MODELS.guarded(type(model)), OBJECTIVES.guarded(type(objective))
    with torch.random.fork_rng(devices=[]), guards[0], guards[1]:
        module: nn.Module = objective.network(model, shape)
    if not isinstance(module, nn.Module) or not any(True for _ in module.parameters()):
        raise BadInput(f"model {model.name}: its network must be a torch.nn.Module with parameters")
    return module
