"""A client's second model as it trains beside the first, at the mixture of both."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.engine.capability_hooks import MixedModel
from fedmpi.engine.optimizer import descend
from fedmpi.engine.passes import Pass, Passes
from fedmpi.engine.personal import Personal
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel


def mixture(model: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return ``share second + (1 - share) model``; `share` is float32 [1]."""
    return model + share * (second - model)


class Mixing:
    """Steps of the second model in one round; the workspace holds the first one before and after each.

    Attributes
    ----------
    work : list of Pass
        Passes at the mixture.

    Parameters
    ----------
    hooks : MixedModel
    optimizer : OptimizerOptions
    passes : Passes
    model : FlatModel
        Workspace.
    second : Personal
    share : float32 [1]
        Of the second model, changed in place in the first step.
    """

    def __init__(
        self,
        hooks: MixedModel,
        optimizer: OptimizerOptions,
        passes: Passes,
        model: FlatModel,
        second: Personal,
        share: Tensor,
    ) -> None:
        self._hooks, self._optimizer, self._passes = hooks, optimizer, passes
        self._model, self._second, self._share = model, second, share
        self._before = model.parameters.clone()
        self.work: list[Pass] = []

    def begin_step(self) -> None:
        """Take note of the first model before its step."""
        self._before.copy_(self._model.parameters)

    def end_step(self, batch: Any, streams: DropoutStreams) -> None:
        """Take the second model's step, with the first model as it was before its own."""
        model, second, trained = self._model, self._second.row, slice(self._model.trained)
        after, gradient = model.parameters.clone(), model.gradient.clone()
        model.parameters.copy_(mixture(self._before, second, self._share))
        self.work.append(self._passes.step(batch, streams))
        found = model.gradient[trained]
        slope = torch.dot((second - self._before)[trained].double(), found.double())
        descend(self._optimizer, self._second.adam, second[trained], found * self._share)
        second[trained.stop :] = model.parameters[trained.stop :]  # running statistics, of the mixture's pass
        if len(self.work) == 1:
            share = self._hooks.next_share(float(self._share), float(slope), self._optimizer.lr)
            self._share.fill_(share)
        model.parameters.copy_(after)
        model.gradient.copy_(gradient)
