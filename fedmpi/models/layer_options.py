"""Layers and models of torch-geometric that a suite may name, and their options (imports without torch)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from fedmpi.config.options import Options

LayerName = Literal[
    "GCNConv",
    "SAGEConv",
    "GATConv",
    "GATv2Conv",
    "TransformerConv",
    "GINConv",
    "GINEConv",
    "PNAConv",
    "GPSConv",
    "GCN",
    "GraphSAGE",
    "GIN",
    "GAT",
    "PNA",
    "EdgeCNN",
    "AttentiveFP",
]

_GCN = frozenset({"improved", "normalize", "add_self_loops", "bias"})
_SAGE = frozenset({"aggr", "normalize", "root_weight", "project", "bias"})
_GAT = frozenset({"heads", "concat", "dropout", "negative_slope", "add_self_loops", "residual", "bias"})
_GIN = frozenset({"eps", "train_eps"})
_PNA = frozenset({"degrees", "towers"})

LAYERS: Mapping[str, frozenset[str]] = {
    "GCNConv": _GCN,
    "SAGEConv": _SAGE,
    "GATConv": _GAT,
    "GATv2Conv": _GAT | {"share_weights"},
    "TransformerConv": frozenset({"heads", "concat", "dropout", "beta", "root_weight", "bias"}),
    "GINConv": _GIN,
    "GINEConv": _GIN,
    "PNAConv": _PNA,
    "GPSConv": frozenset({"heads", "dropout"}),
}
"""Options of each layer."""

_STACK = frozenset({"act", "norm", "jk"})

STACKS: Mapping[str, frozenset[str]] = {
    "GCN": _GCN | _STACK,
    "GraphSAGE": _SAGE | _STACK,
    "GIN": _GIN | _STACK,
    "GAT": _GAT - {"dropout"} | {"v2"} | _STACK,
    "PNA": _PNA | _STACK,
    "EdgeCNN": _STACK | {"aggr"},
}
"""Options of each whole model that gives states of nodes; their dropout is the network's."""

WHOLE: Mapping[str, frozenset[str]] = {**STACKS, "AttentiveFP": frozenset({"num_timesteps"})}
"""Options of each whole model."""

WITH_EDGES = frozenset(
    {
        "GATConv",
        "GATv2Conv",
        "TransformerConv",
        "GINEConv",
        "PNAConv",
        "GPSConv",
        "GAT",
        "PNA",
        "AttentiveFP",
    }
)
"""Layers and models that read attributes of edges where the dataset has any."""

_NEED_EDGES = {"GINEConv": "GINConv", "AttentiveFP": "GAT"}
"""Those that need them, and what to use where there are none."""


def edges_missing(layer: str) -> str:
    """Return what to do where edges have no attributes; empty where that is no trouble."""
    if layer not in _NEED_EDGES:
        return ""
    return f'"{layer}" needs attributes of edges, the data have none: use "{_NEED_EDGES[layer]}"'


class LayerOptions(Options):
    """Options of one layer, named as in torch-geometric; one that is left out has its default there."""

    heads: Annotated[int, Field(ge=1, le=64)] | None = None
    """Attention heads; the layer is `hidden` wide whatever their number."""
    concat: bool | None = None
    """Whether heads stand side by side, each ``hidden / heads`` wide, or are averaged, each `hidden` wide."""
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Probability with which an attention weight, or in GPSConv an activation, is dropped in training."""
    negative_slope: Annotated[float, Field(ge=0, le=1)] | None = None
    """Slope below zero of LeakyReLU in the attention."""
    add_self_loops: bool | None = None
    """Whether each node is a neighbour of itself."""
    residual: bool | None = None
    """Whether a product of the node's own state is added."""
    share_weights: bool | None = None
    """Whether sender and receiver have one matrix."""
    beta: bool | None = None
    """Whether a gate weighs the node's own state against its neighbours'."""
    root_weight: bool | None = None
    """Whether the node's own state is read."""
    bias: bool | None = None
    """Whether a bias is learned."""
    improved: bool | None = None
    """Whether a node counts twice among its neighbours."""
    normalize: bool | None = None
    """Of GCN, whether sums are scaled by degrees; of GraphSAGE, whether each state has length 1."""
    aggr: Literal["mean", "sum", "max"] | None = None
    """Of the neighbours' states."""
    project: bool | None = None
    """Whether a Linear and ReLU come before that."""
    eps: float | None = None
    """The node's own state counts ``1 + eps`` times."""
    train_eps: bool | None = None
    """Whether `eps` is learned."""
    towers: Annotated[int, Field(ge=1, le=64)] | None = None
    """Parts of a state that are computed apart; `hidden` must be a multiple."""
    degrees: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(strict=False)] | None = None
    """Numbers of nodes with degree 0, 1, 2, ... (`deg` there), by whose mean all clients scale."""
    v2: bool | None = None
    """Whether GAT's layers are GATv2Conv."""
    act: Literal["relu", "leaky_relu", "elu", "gelu", "silu", "tanh"] | None = None
    """Activation after each convolution of a whole model."""
    norm: Literal["batch_norm", "graph_norm", "layer_norm"] | None = None
    """Normalisation before each activation of a whole model."""
    jk: Literal["last", "cat", "max"] | None = None
    """How a Linear at the end of a whole model reads the states of all its convolutions, or of the last."""
    num_timesteps: Annotated[int, Field(ge=1, le=16)] | None = None
    """Steps of AttentiveFP's readout."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}

    def misfit(self, layer: str, hidden: int) -> str:
        """Return why a layer of this width cannot have these options; empty where it can."""
        known = {**LAYERS, **WHOLE}[layer]
        if unknown := [name for name in self.model_dump() if name not in known]:
            return f'"{layer}" has no option {unknown[0]} (known: {", ".join(sorted(known))})'
        if self.concat is not False and hidden % (self.heads or 1):
            return f"hidden {hidden} is no multiple of {self.heads} heads"
        if hidden % (self.towers or 1):
            return f"hidden {hidden} is no multiple of {self.towers} towers"
        if known >= _GCN and self.add_self_loops and self.normalize is False:
            return (
                f'"{layer}" adds self-loops only where it normalizes: leave out add_self_loops or normalize'
            )
        if known >= _PNA and not any((self.degrees or ())[1:]):
            return f'"{layer}" needs the option degrees, numbers of nodes by degree, such as [0, 9, 5]'
        if layer in ("GIN", "EdgeCNN") and self.norm not in (None, "batch_norm"):
            # torch-geometric's MLP does not tell its normalisation which graph a row is of
            return f'"{layer}" would take "{self.norm}" over all graphs of a batch: use "batch_norm"'
        if layer == "AttentiveFP" and self.num_timesteps is None:
            return '"AttentiveFP" needs the option num_timesteps, steps of its readout, such as 2'
        return ""
