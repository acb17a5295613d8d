"""What an algorithm's capabilities have a client keep from round to round, as vectors by name."""

from __future__ import annotations

import torch
from torch import Tensor

from fedmpi.engine.hooks import Hooks
from fedmpi.models.flat import FlatModel, SharedPart

VECTOR = "vector"
"""The client's vector of `ClientVector`, float32 [trained]."""

SHARE = "share"
"""Share of the second model in the mixture of `MixedModel`, float32 [1]."""


def kept_at_start(algorithm: Hooks, model: FlatModel, shared: SharedPart) -> dict[str, Tensor]:
    """Return what a client keeps before its first round, float32 vectors by name.

    Parameters
    ----------
    algorithm : Hooks
    model : FlatModel
        Of the client's shape.
    shared : SharedPart
        What of it is communicated.
    """
    kept: dict[str, Tensor] = {}
    if algorithm.vector is not None:
        kept[VECTOR] = torch.zeros(shared.trained, device=model.parameters.device)
    if algorithm.mixed is not None:
        kept[SHARE] = torch.full((1,), algorithm.mixed.first_share(), device=model.parameters.device)
    return kept
