"""A client's mask over its parameters: how it trains, and what is left of it afterwards."""

from __future__ import annotations

import torch
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.engine.capability_hooks import MaskedModel
from fedmpi.engine.optimizer import AdamState, descend
from fedmpi.models.flat import FlatModel, SharedPart


def masked_part(hooks: MaskedModel | None, model: FlatModel) -> SharedPart | None:
    """Return the ranges of the parameters that have a mask; None without any."""
    if hooks is None:
        return None
    names = tuple(slot.name for slot in model.slots)
    return model.shared(frozenset(hooks.masks(names)).__contains__)


def product(row: Tensor, part: SharedPart, mask: Tensor, least: float = 0.0) -> Tensor:
    """Return parameters times their mask, float32 [length].

    Parameters
    ----------
    row : float32 [length]
    part : SharedPart
        Which of them have a mask.
    mask : float32 [masked]
    least : float
        Elements of the mask below it, signs left out, count as 0.
    """
    found = row.clone()
    kept = mask if not least else torch.where(mask.abs() < least, 0.0, mask)
    part.unpack(part.pack(row) * kept, found)
    return found


class Masking:
    """Steps of a client's mask in one round; the workspace holds the parameters without it between steps.

    Parameters
    ----------
    hooks : MaskedModel
    optimizer : OptimizerOptions
    model : FlatModel
        Workspace.
    part : SharedPart
        Which parameters have a mask.
    mask : float32 [masked]
        Changed in place.
    adam : AdamState
        Of the mask.
    """

    def __init__(
        self,
        hooks: MaskedModel,
        optimizer: OptimizerOptions,
        model: FlatModel,
        part: SharedPart,
        mask: Tensor,
        adam: AdamState,
    ) -> None:
        self._hooks, self._optimizer, self._adam = hooks, optimizer, adam
        self._model, self._part, self._mask = model, part, mask
        self._parameters = model.parameters.clone()

    def begin_step(self) -> None:
        """Multiply the parameters by the mask, for the pass of a step."""
        self._parameters.copy_(self._model.parameters)
        self._model.parameters.copy_(product(self._parameters, self._part, self._mask))

    def end_pass(self) -> None:
        """Take the mask's step; leave the parameters as before the pass, and their own gradient."""
        model, part, trained = self._model, self._part, slice(self._model.trained)
        model.parameters[trained] = self._parameters[trained]  # running statistics stay those of the pass
        at_product = part.pack(model.gradient)
        part.unpack(at_product * self._mask, model.gradient)
        gradient = at_product * part.pack(self._parameters)
        self._hooks.mask_penalty(self._mask, gradient)
        descend(self._optimizer, self._adam, self._mask, gradient)
