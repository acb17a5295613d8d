"""Normalisation layers between a convolution and its activation."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, layer_norm

from fedmpi.graphs.batch import Batch

EPS = 1e-5
"""Added to variances inside the root; torch's and torch-geometric's default."""


class GraphNorm(nn.Module):
    r"""GraphNorm (Cai et al., ICML 2021), which FedCCH's Eq. 6 makes its personalised factor.

    .. math:: \gamma (h - \alpha \mu) / \sqrt{\hat\sigma^2 + \epsilon} + \beta

    with the mean :math:`\mu` of each graph and channel and :math:`\hat\sigma^2` the mean of
    :math:`(h - \alpha \mu)^2`. Eq. 6 has no epsilon; without it a graph of one node divides by zero.

    Parameters
    ----------
    hidden : int
        Channels h.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden))
        self.bias = nn.Parameter(torch.empty(hidden))
        self.mean_scale = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set gamma and alpha to 1, beta to 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        nn.init.ones_(self.mean_scale)

    def forward(self, x: Tensor, batch: Batch, training: bool, kernels: str = "csr") -> Tensor:
        """Normalise the rows [N, h] graph by graph; `training` makes no difference.

        Parameters
        ----------
        x : float32 [N, h]
        batch : Batch
        training : bool
        kernels : str, optional
            "csr", or "reference" for torch-geometric's layer.
        """
        if kernels == "reference":
            from torch_geometric.nn import GraphNorm as Reference

            parameters: dict[str, Tensor] = dict(self.named_parameters())
            arguments = (x, batch.graph_of_node, batch.num_graphs)
            layer = Reference(x.shape[1], eps=EPS).to(x.device)
            return torch.func.functional_call(layer, parameters, arguments)  # type: ignore[no-any-return]
        centred = x - batch.spread_graphs(batch.mean_graphs(x) * self.mean_scale)
        variance = batch.mean_graphs(centred * centred)
        scale = self.weight * torch.rsqrt(variance + EPS)
        return centred * batch.spread_graphs(scale) + self.bias


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation over all nodes of a batch, with running statistics for evaluation."""

    def forward(self, x: Tensor, batch: Batch, training: bool, kernels: str = "csr") -> Tensor:  # type: ignore[override]
        """Normalise the rows [N, h]; a batch of a single node, which has no variance, as in evaluation.

        See `GraphNorm.forward`.
        """
        running, varying = (self.running_mean, self.running_var), training and len(x) > 1
        return batch_norm(x, *running, self.weight, self.bias, varying, momentum=0.1, eps=EPS)


class LayerNorm(nn.LayerNorm):
    """Layer normalisation of each node's row."""

    def forward(self, x: Tensor, batch: Batch, training: bool, kernels: str = "csr") -> Tensor:  # type: ignore[override]
        """Normalise the rows [N, h]; `training` makes no difference. See `GraphNorm.forward`."""
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, EPS)
