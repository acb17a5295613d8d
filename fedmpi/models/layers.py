"""Networks of torch-geometric's layers, or of one of its whole models, chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch_geometric.nn as layers
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch_geometric.nn import models

from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.layer_options import STACKS, WHOLE, WITH_EDGES, edges_missing
from fedmpi.models.message_passing import GraphNetwork
from fedmpi.models.options import Shape, TorchGeometricOptions

_AGGREGATORS = ["mean", "min", "max", "std"]
_SCALERS = ["identity", "amplification", "attenuation"]
"""Those of Corso et al., "Principal neighbourhood aggregation for graph nets", NeurIPS 2020, Eq. 8."""


class LayerNetwork(GraphNetwork):
    """`GraphNetwork` of layers that run as torch-geometric has them, with attributes of edges if they can.

    A whole model of torch-geometric is its one convolution, after which there is no activation. AttentiveFP's
    first Linear is the network's, and so is its last where the head is one layer.

    Attributes
    ----------
    constants : set of str
        Names of the buffers that nobody trains: GIN's eps, means of PNA's degrees.
    """

    options: TorchGeometricOptions

    def __init__(self, options: TorchGeometricOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        self.constants = {name for name, _ in self.named_buffers() if ".running_" not in name}
        self._activates_last = self._activates_last and options.layer not in WHOLE

    def _convolution(self, edges: int) -> Any:
        return make_layer(self.options, edges)

    def _convolved(self, convolution: Any, x: Tensor, batch: Batch, kernels: str) -> Tensor:
        layer, named = self.options.layer, dict[str, Any]()
        if layer in WITH_EDGES and batch.edges is not None:
            named["edge_attr"] = batch.edges
        if layer == "GPSConv" or layer in WHOLE:
            if not len(x):
                return x  # torch-geometric looks for the last graph
            named["batch"] = batch.graph_of_node
        if layer in STACKS:
            named["batch_size"] = batch.num_graphs
        return convolution(x, batch.edge_index, **named)  # type: ignore[no-any-return]

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return what the head sees of each example, [n, h]; AttentiveFP reads its graphs itself."""
        states = self._states(batch, streams, kernels)
        return states if self.options.layer == "AttentiveFP" else batch.read(states, self.options.pooling)

    def _states(self, batch: Batch, streams: DropoutStreams | None, kernels: str) -> Tensor:
        self.conv.train(streams is not None)  # normalisation inside takes the batch's moments, or its own
        with DropoutInside(streams, len(self.conv) + 1):
            return super()._states(batch, streams, kernels)


class DropoutInside(TorchFunctionMode):
    """Has the dropout of torch's and torch-geometric's layers take masks of `DropoutStreams`.

    Parameters
    ----------
    streams : DropoutStreams or None
        None: nothing is dropped.
    layer : int
        Layer of the streams that the first of them takes; the next takes the next.
    """

    def __init__(self, streams: DropoutStreams | None, layer: int) -> None:
        super().__init__()
        self._streams, self._layer = streams, layer

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch, or drop."""
        call = self._drop if func is nn.functional.dropout else func
        return call(*args, **(kwargs or {}))

    def _drop(self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if self._streams is None:
            return input
        self._layer += 1
        return self._streams.apply(input, self._layer - 1, p)


def make_layer(options: TorchGeometricOptions, edges: int) -> Any:
    """Return one layer from `hidden` to `hidden`, or a whole model, for edges with so many attributes.

    Raises
    ------
    BadInput
        It needs attributes of edges, and there are none.
    """
    name, hidden, given = options.layer, options.hidden, options.options.model_dump()
    if not edges and (missing := edges_missing(name)):
        raise BadInput(f"model.layer: {missing}")
    if name in WHOLE:
        return _whole(options, edges, **given)
    if name in ("GINConv", "GINEConv"):
        return _gin(hidden, edges if name == "GINEConv" else 0, **given)
    if name == "GPSConv":
        return layers.GPSConv(hidden, _gin(hidden, edges), norm="layer_norm", **given)
    if name in WITH_EDGES:
        given["edge_dim"] = edges or None
    if name == "PNAConv":
        return layers.PNAConv(hidden, hidden, **_scaled(**given))
    heads = given.get("heads", 1) if given.get("concat", True) else 1
    return getattr(layers, name)(hidden, hidden // heads, **given)


def _whole(options: TorchGeometricOptions, edges: int, **given: Any) -> Any:
    """Return a whole model, whose states are as wide as its inputs."""
    name, hidden = options.layer, options.hidden
    if name == "AttentiveFP":
        found = models.AttentiveFP(
            hidden, hidden, hidden, edges, options.layers, dropout=options.dropout, **given
        )
        found.lin1, found.lin2 = _Unchanged(), _Unchanged()
        return found
    if name in WITH_EDGES and edges:
        given["edge_dim"] = edges
    if name == "PNA":
        given = _scaled(**given)
    if given.get("norm") == "batch_norm":  # one node has no variance
        given["norm_kwargs"] = {"allow_single_element": True}
    return getattr(models, name)(hidden, hidden, options.layers, dropout=options.dropout, **given)


class _Unchanged(nn.Identity):
    """In place of a Linear that the network has."""

    def reset_parameters(self) -> None:
        """No-op: torch-geometric's model asks each of its parts for it."""


def _scaled(degrees: tuple[int, ...], **given: Any) -> dict[str, Any]:
    """Return the arguments of PNA's layers."""
    return {"aggregators": _AGGREGATORS, "scalers": _SCALERS, "deg": torch.tensor(degrees), **given}


def _gin(hidden: int, edges: int, **given: Any) -> Any:
    """Return a GINEConv for edges with so many attributes, a GINConv for 0."""
    mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
    return layers.GINEConv(mlp, edge_dim=edges, **given) if edges else layers.GINConv(mlp, **given)
