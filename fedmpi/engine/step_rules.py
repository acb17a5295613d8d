"""How a client goes on from a gradient: what changes it, what it moves, and with which moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.engine.capability_hooks import TrainingPhases
from fedmpi.engine.optimizer import AdamState, descend
from fedmpi.models.flat import FlatModel, SharedPart

if TYPE_CHECKING:
    from fedmpi.engine.embedding_terms import EmbeddingTerms
    from fedmpi.engine.masking import Masking
    from fedmpi.engine.mixing import Mixing

Change = Callable[[Tensor], None]
"""Adds to the gradient of the shared parameters, in place."""


@dataclass(frozen=True)
class StepRule:
    """How local steps are taken.

    Attributes
    ----------
    adam : AdamState
    change : callable or None
        What is done to the gradient of the shared parameters [shared], in place.
    frozen : bool [trained] or None
        Parameters that stay as they are.
    mixing : Mixing or None
        Trains a second model at the same steps.
    terms : EmbeddingTerms or None
        Makes terms of the loss of embeddings.
    masking : Masking or None
        Trains a mask at the same steps.
    """

    adam: AdamState
    change: Change | None = None
    frozen: Tensor | None = None
    mixing: Mixing | None = None
    terms: EmbeddingTerms | None = None
    masking: Masking | None = None

    @property
    def is_plain(self) -> bool:
        """Whether steps are the optimizer's alone, which some kernels take themselves."""
        others = (self.change, self.frozen, self.mixing, self.terms, self.masking)
        return all(each is None for each in others)

    def take(self, optimizer: OptimizerOptions, model: FlatModel, shared: SharedPart) -> None:
        """Take one optimizer step; the objective's own gradient stays in ``model.gradient``."""
        gradient = model.gradient
        if self.change is not None:
            gradient = gradient.clone()
            part = shared.pack(gradient)
            self.change(part)
            shared.unpack(part, gradient)
        trained = slice(model.trained)
        parameters, gradient = model.parameters[trained], gradient[trained]
        if self.frozen is None:
            descend(optimizer, self.adam, parameters, gradient)
            return
        before = parameters.clone()
        descend(optimizer, self.adam, parameters, gradient.masked_fill(self.frozen, 0.0))
        parameters.copy_(torch.where(self.frozen, before, parameters))


def frozen_in(hooks: TrainingPhases, model: FlatModel, phase: int) -> Tensor:
    """Return the parameters that a phase leaves alone, bool [trained]."""
    frozen = torch.zeros(model.trained, dtype=torch.bool, device=model.parameters.device)
    for slot in model.slots:
        frozen[slot.start : slot.stop] = not hooks.trains(slot.name, phase)
    return frozen
