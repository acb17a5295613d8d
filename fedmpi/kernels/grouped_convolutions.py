"""Convolutions of several clients at once: of rows [k, n, h], as those of `fedmpi.models` of each alone."""

from __future__ import annotations

import torch
from torch import Tensor

from fedmpi.kernels.grouped_attention import attended
from fedmpi.kernels.grouped_layers import Weights
from fedmpi.kernels.grouped_sums import GroupSums
from fedmpi.models import options as models


def convolved(options: models.ModelOptions, weights: Weights, sums: GroupSums, x: Tensor) -> Tensor:
    """Return a convolution of the rows, [k, n, h].

    Parameters
    ----------
    options : ModelOptions
    weights : Weights
        Of the convolution.
    sums : GroupSums
    x : float32 [k, n, h]
    """
    match options:
        case models.GinOptions():
            return weights.linear("second", torch.relu(weights.linear("first", sums.closed(x))))
        case models.GcnOptions():
            return sums.normalised(weights.linear("lin", x)) + weights["bias"].unsqueeze(1)
        case models.GatOptions():
            shape = (*x.shape[:2], options.heads, options.hidden // options.heads)
            states = weights.linear("lin", x).view(shape)
            receiver, sender = (weights[f"att_{side}"].squeeze(1) for side in ("dst", "src"))
            summed = attended(sums.entries, states, (receiver, sender), options.slope)
            return summed + weights["bias"].unsqueeze(1)
        case models.SageOptions():
            return weights.linear("lin_l", sums.mean_neighbours(x)) + weights.linear("lin_r", x)
        case models.SgcOptions():
            for _ in range(options.layers):
                x = sums.normalised(x)
            return weights.linear("lin", x)
    raise AssertionError(options.name)
