"""GIN (Xu et al. 2019) as the GCFL experiments use it."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import relu

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.norms import BatchNorm, GraphNorm, LayerNorm
from fedmpi.models.options import GinOptions, Shape


class GinMlp(nn.Module):
    r"""The MLP of one GIN convolution, h' = W2 relu(W1 ((A + I) h) + b1) + b2, with eps fixed at 0."""

    def __init__(self, hidden: int, width: int | None = None) -> None:
        super().__init__()
        self.first = nn.Linear(width or hidden, hidden)
        self.second = nn.Linear(hidden, hidden)

    def forward(self, summed: Tensor) -> Tensor:
        """Map sums over neighbourhoods, [N, width], to [N, h]."""
        return self.second(relu(self.first(summed)))  # type: ignore[no-any-return]


class GIN(nn.Module):
    """Linear, GIN convolutions with ReLU and dropout, sum pooling of the last layer, two-layer head.

    Parameters
    ----------
    options : GinOptions
        Hidden width, layers, dropout.
    shape : Shape
        Node features d, and outputs C of the head.

    Notes
    -----
    29,506 parameters for d = 3, C = 2, hidden 64, of which the three MLPs hold
    24,960. The convolutions are named ``conv.*``: what GCFL shares. Normalisation
    layers lie between a convolution and its ReLU: ``norm.*`` (batch or layer), then
    ``graph_norm.*``; they come last, so that all else starts as without them.
    """

    def __init__(self, options: GinOptions, shape: Shape) -> None:
        super().__init__()
        self.options = options
        self.pre = nn.Linear(shape.width, options.hidden)
        self.conv = nn.ModuleList(GinMlp(options.hidden) for _ in range(options.layers))
        self.post = nn.Linear(options.hidden, options.hidden)
        self.readout = nn.Linear(options.hidden, shape.classes)
        self.norm = _stack(options, {"batch": BatchNorm, "layer": LayerNorm})
        self.graph_norm = _stack(options, {"graph": GraphNorm})

    def forward(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return logits [B, C]; `streams` is None in evaluation.

        ``kernels = "reference"`` runs torch-geometric's GINConv and pooling on the
        same parameters and the same dropout masks.
        """
        hidden = relu(self.post(self.embed(batch, streams, kernels)))
        if streams is not None:
            hidden = streams.apply(hidden, len(self.conv), self.options.dropout)
        return self.readout(hidden)  # type: ignore[no-any-return]

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return what the head sees: the sums over the graphs' nodes, or the rows of nodes, [n, h]."""
        x = batch.linear(self.pre)
        for layer, mlp in enumerate(self.conv):
            x = convolve(mlp, batch, x, kernels)
            for norms in (self.norm, self.graph_norm):
                x = norms[layer](x, batch, streams is not None, kernels) if norms else x
            x = relu(x)
            if streams is not None:
                x = streams.apply(x, layer, self.options.dropout)
        return pool(batch, x, kernels)


def _stack(options: GinOptions, kinds: Mapping[str, type[nn.Module]]) -> nn.ModuleList:
    """Return one normalisation layer per convolution if the options ask for one of `kinds`, else none."""
    chosen = [kinds[name] for name in options.norms if name in kinds]
    return nn.ModuleList(kind(options.hidden) for kind in chosen for _ in range(options.layers))


def convolve(mlp: nn.Module, batch: Batch, x: Tensor, kernels: str) -> Tensor:
    """Return the MLP of the sums over closed neighbourhoods, [N, h].

    Parameters
    ----------
    mlp : Module
        From [N, width] to [N, h].
    batch : Batch
    x : float32 [N, width]
    kernels : str
        "csr", or "reference" for torch-geometric's layer.
    """
    if kernels == "reference":
        from torch_geometric.nn import GINConv

        conv = GINConv(nn.Identity(), eps=0.0, train_eps=False)
        conv.nn = mlp  # set afterwards, because the constructor initialises its network anew
        return conv(x, batch.edge_index)  # type: ignore[no-any-return]
    return mlp(batch.sum_neighbourhood(x))  # type: ignore[no-any-return]


def pool(batch: Batch, x: Tensor, kernels: str) -> Tensor:
    """Return the sums over the nodes of each graph, or the rows of nodes that are examples, [n, h]."""
    if kernels == "reference" and batch.places is None:
        from torch_geometric.nn import global_add_pool

        return global_add_pool(x, batch.graph_of_node, batch.num_graphs)  # type: ignore[no-any-return]
    return batch.read(x, "sum")
