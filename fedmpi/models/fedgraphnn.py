"""FedGraphNN's molecule models (He et al. 2021), with the parameter counts of its Table 6.

Their code was never documented; the shapes follow from those counts. All three end in the same
readout: every node's features beside its embedding, Linear, ReLU, Linear, ReLU, the mean over the
nodes, and a Linear, which commutes with the mean. Self loops are part of every neighbourhood.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import elu, leaky_relu, relu

from fedmpi.graphs.batch import Batch
from fedmpi.models.dropout import DropoutStreams, fixed_words
from fedmpi.models.options import FedGraphNNGatOptions, FedGraphNNOptions, FedGraphNNSageOptions, Shape

_FANOUT = 2


class Projection(nn.Module):
    """A product with a matrix, initialised by Glorot and Bengio's uniform rule; no bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrix anew."""
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Map [N, inputs] to [N, outputs]."""
        return x @ self.weight


class Attention(nn.Module):
    """One layer of graph attention with k heads of width d over closed neighbourhoods.

    ``e_ij = LeakyReLU(a [W h_i, W h_j])`` is the sum of a number of i and one of j, so no tensor of
    pairs is made; softmax over the neighbours j of i. 2 k d numbers in a, and W of Projection.
    """

    def __init__(self, inputs: int, width: int, heads: int, slope: float) -> None:
        super().__init__()
        self.heads, self.width, self.slope = heads, width, slope
        self.project = Projection(inputs, heads * width)
        self.attend = nn.ParameterDict(
            {side: nn.Parameter(torch.empty(heads, width)) for side in ("receiver", "sender")}
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the attention's numbers anew."""
        for vector in self.attend.values():
            nn.init.xavier_uniform_(vector)

    def forward(
        self, batch: Batch, x: Tensor, streams: DropoutStreams | None, layer: int, p: float
    ) -> Tensor:
        """Map the nodes' rows to [N, k d].

        Parameters
        ----------
        batch : Batch
        x : float32 [N, inputs]
        streams : DropoutStreams, optional
            None in evaluation.
        layer : int
            Number of the dropout on the attention.
        p : float
            Its probability.
        """
        receiver, sender = batch.closed_index
        states = self.project(x).view(-1, self.heads, self.width)
        of_receiver, of_sender = ((states * self.attend[side]).sum(2) for side in ("receiver", "sender"))
        scores = leaky_relu(of_receiver[receiver] + of_sender[sender], self.slope)
        highest = batch.reduce_rows(scores.detach(), "max")
        weights = (scores - highest[receiver]).exp()
        shares = weights / batch.reduce_rows(weights, "sum")[receiver]
        if streams is not None:
            shares = streams.apply(shares, layer, p)
        return batch.reduce_rows(states[sender] * shares[:, :, None], "sum").flatten(1)


class MoleculeNetwork(nn.Module):
    """Two graph layers and the readout.

    Parameters
    ----------
    options : FedGraphNNOptions
        Which layers, and the widths h, d, r, g.
    shape : Shape
        Input width f and outputs C.

    Notes
    -----
    ``(f + d) r + r + r g + g + g C + C`` parameters in the readout; GCN adds ``f h + h d``, GAT with k
    heads ``k (f h + 2 h) + k h d + 2 d``, GraphSAGE ``2 f h + 2 h d``.
    """

    def __init__(self, options: FedGraphNNOptions, shape: Shape) -> None:
        super().__init__()
        self.options = options
        self.conv = nn.ModuleList(_layers(options, shape.width))
        self.first = nn.Linear(shape.width + options.node, options.readout)
        self.second = nn.Linear(options.readout, options.graph)
        self.last = nn.Linear(options.graph, shape.classes)

    def embed(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return what is averaged of each graph's nodes, [B, g]."""
        match self.options:
            case FedGraphNNGatOptions():
                nodes = self._attended(batch, streams)
            case FedGraphNNSageOptions():
                nodes = self._sampled(batch, streams)
            case _:
                nodes = self._propagated(batch, streams)
        read = relu(self.first(torch.cat([batch.x, nodes], dim=1)))
        return batch.mean_graphs(relu(self.second(read)))

    def forward(self, batch: Batch, streams: DropoutStreams | None, kernels: str = "csr") -> Tensor:
        """Return outputs [B, C]; `streams` is None in evaluation."""
        return self.last(self.embed(batch, streams, kernels))  # type: ignore[no-any-return]

    def _propagated(self, batch: Batch, streams: DropoutStreams | None) -> Tensor:
        """Return A dropout((A X) W1) W2 with the symmetrically normalised A."""
        x = self.conv[0](batch.propagated)
        if streams is not None:
            x = streams.apply(x, 0, self.options.dropout)
        return batch.normalised_sum(self.conv[1](x))

    def _attended(self, batch: Batch, streams: DropoutStreams | None) -> Tensor:
        """Return two layers of attention, with dropout on inputs and attention as Velickovic et al."""
        x, drop = batch.x, self.options.dropout
        for layer, attention in enumerate(self.conv):
            if streams is not None:
                x = streams.apply(x, 2 * layer, drop)
            x = elu(attention(batch, x, streams, 2 * layer + 1, drop))
        return x

    def _sampled(self, batch: Batch, streams: DropoutStreams | None) -> Tensor:
        """Return two layers over neighbours drawn with replacement, anew in every step."""
        count = len(batch.x)
        near = _drawn(batch, np.arange(count), streams, 1)
        asked = np.concatenate([np.arange(count), near])
        far = torch.from_numpy(_drawn(batch, asked, streams, 2)).to(batch.x.device)
        own = batch.x[torch.from_numpy(asked).to(batch.x.device)]
        around = batch.x[far].view(len(asked), _FANOUT, batch.x.shape[1]).mean(dim=1)
        x = relu(self.conv[0](torch.cat([own, around], dim=1)))
        if streams is not None:
            x = streams.apply(x, 0, self.options.dropout)
        around = x[count:].view(count, _FANOUT, self.options.hidden).mean(dim=1)
        return relu(self.conv[1](torch.cat([x[:count], around], dim=1)))


def _layers(options: FedGraphNNOptions, width: int) -> list[nn.Module]:
    hidden, node = options.hidden, options.node
    match options:
        case FedGraphNNGatOptions():
            first = Attention(width, hidden, options.heads, options.slope)
            return [first, Attention(options.heads * hidden, node, 1, options.slope)]
        case FedGraphNNSageOptions():
            return [Projection(2 * width, hidden), Projection(2 * hidden, node)]
        case _:
            return [Projection(width, hidden), Projection(hidden, node)]


def _drawn(batch: Batch, nodes: np.ndarray, streams: DropoutStreams | None, layer: int) -> np.ndarray:
    """Return `_FANOUT` neighbours of each node, node by node; without streams the same always."""
    pointers, columns = batch.closed
    count = _FANOUT * len(nodes)
    words = fixed_words(layer, count) if streams is None else streams.words(layer, count)
    repeated = np.repeat(nodes, _FANOUT)
    degrees = np.diff(pointers)[repeated].astype(np.uint64)
    place = (words % degrees).astype(np.int64)
    chosen: np.ndarray = columns[pointers[repeated] + place]
    return chosen
