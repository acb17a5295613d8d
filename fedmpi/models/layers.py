"""Networks of torch-geometric's layers, chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch_geometric.nn as layers
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fedmpi.errors import BadInput
from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.layer_options import WITH_EDGES
from fedmpi.models.message_passing import GraphNetwork
from fedmpi.models.options import Shape, TorchGeometricOptions

_AGGREGATORS = ["mean", "min", "max", "std"]
_SCALERS = ["identity", "amplification", "attenuation"]
"""Those of Corso et al., "Principal neighbourhood aggregation for graph nets", NeurIPS 2020, Eq. 8."""


class LayerNetwork(GraphNetwork):
    """`GraphNetwork` of layers that run as torch-geometric has them, with attributes of edges if they can.

    Attributes
    ----------
    constants : set of str
        Names of the buffers, which nobody trains: GIN's eps, means of PNA's degrees.
    """

    options: TorchGeometricOptions

    def __init__(self, options: TorchGeometricOptions, shape: Shape) -> None:
        super().__init__(options, shape)
        self.constants = {name for name, _ in self.named_buffers()}

    def _convolution(self, edges: int) -> Any:
        return make_layer(self.options, edges)

    def _convolved(self, convolution: Any, x: Tensor, batch: Batch, kernels: str) -> Tensor:
        named = {}
        if self.options.layer in WITH_EDGES and batch.edges is not None:
            named["edge_attr"] = batch.edges
        if self.options.layer == "GPSConv":
            if not len(x):
                return x  # torch-geometric looks for the last graph
            named["batch"] = batch.graph_of_node
        return convolution(x, batch.edge_index, **named)  # type: ignore[no-any-return]

    def _states(self, batch: Batch, streams: DropoutStreams | None, kernels: str) -> Tensor:
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
    """Return one layer from `hidden` to `hidden`, for edges with so many attributes.

    Raises
    ------
    BadInput
        It needs attributes of edges, and there are none.
    """
    name, hidden, given = options.layer, options.hidden, options.options.model_dump()
    if name == "GINEConv" and not edges:
        raise BadInput('model.layer: "GINEConv" needs attributes of edges, the data have none: use "GINConv"')
    if name in ("GINConv", "GINEConv"):
        return _gin(hidden, edges if name == "GINEConv" else 0, **given)
    if name == "GPSConv":
        return layers.GPSConv(hidden, _gin(hidden, edges), norm="layer_norm", **given)
    if name in WITH_EDGES:
        given["edge_dim"] = edges or None
    if name == "PNAConv":
        degrees = torch.tensor(given.pop("degrees"))
        return layers.PNAConv(hidden, hidden, _AGGREGATORS, _SCALERS, degrees, **given)
    heads = given.get("heads", 1) if given.get("concat", True) else 1
    return getattr(layers, name)(hidden, hidden // heads, **given)


def _gin(hidden: int, edges: int, **given: Any) -> Any:
    """Return a GINEConv for edges with so many attributes, a GINConv for 0."""
    mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
    return layers.GINEConv(mlp, edge_dim=edges, **given) if edges else layers.GINConv(mlp, **given)
