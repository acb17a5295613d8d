"""What an algorithm's capabilities have a client keep from round to round, as vectors by name."""

from __future__ import annotations

import torch
from torch import Tensor

from fedmpi.engine.hooks import Hooks
from fedmpi.engine.prototypes import PrototypeShape
from fedmpi.models.flat import FlatModel, SharedPart

VECTOR = "vector"
"""The client's vector of `ClientVector`, float32 [trained]."""

SHARE = "share"
"""Share of the second model in the mixture of `MixedModel`, float32 [1]."""

MERGING_WEIGHTS = "merging weights"
"""Weights of `LocalMerging`, float32 [merged]; NaN before the client merges for the first time."""

MASK = "mask"
"""Mask of `MaskedModel`, float32 [masked]; ones before the first round."""

PROTOTYPES = "prototypes"
"""Prototypes as the client got them last, float32 [C h]; NaN for classes without any."""


def merged_part(algorithm: Hooks, model: FlatModel, share: str) -> SharedPart | None:
    """Return the ranges of the parameters that are merged with a client's own; None if none are.

    Parameters
    ----------
    algorithm : Hooks
    model : FlatModel
    share : str
        The case's option.
    """
    if algorithm.merging is None:
        return None
    names = tuple(slot.name for slot in model.slots if algorithm.shares(slot.name, share))
    return model.shared(frozenset(algorithm.merging.merges(names)).__contains__)


def kept_at_start(
    algorithm: Hooks,
    model: FlatModel,
    shared: SharedPart,
    merged: SharedPart | None,
    masked: SharedPart | None,
    prototypes: PrototypeShape | None,
) -> dict[str, Tensor]:
    """Return what a client keeps before its first round, float32 vectors by name.

    Parameters
    ----------
    algorithm : Hooks
    model : FlatModel
        Of the client's shape.
    shared : SharedPart
        What of it is communicated.
    merged : SharedPart or None
        What of it is merged: see `merged_part`.
    masked : SharedPart or None
        What of it has a mask: see `fedmpi.engine.masking.masked_part`.
    prototypes : PrototypeShape or None
        Of the federation.
    """
    kept: dict[str, Tensor] = {}
    if algorithm.vector is not None:
        kept[VECTOR] = torch.zeros(shared.trained, device=model.parameters.device)
    if algorithm.mixed is not None:
        kept[SHARE] = torch.full((1,), algorithm.mixed.first_share(), device=model.parameters.device)
    if merged is not None:
        kept[MERGING_WEIGHTS] = torch.full((merged.size,), torch.nan, device=model.parameters.device)
    if masked is not None:
        kept[MASK] = torch.ones(masked.size, device=model.parameters.device)
    if prototypes is not None:
        size = prototypes.classes * prototypes.width
        kept[PROTOTYPES] = torch.full((size,), torch.nan, device=model.parameters.device)
    return kept
