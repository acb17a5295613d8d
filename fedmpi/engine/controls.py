"""A client's control variate, for algorithms that correct every local step by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.engine.capability_hooks import ControlVariates


@dataclass
class Controls:
    """Control variates as long as the shared vector; running statistics have none, their places stay 0.

    Attributes
    ----------
    own, server : float32 [shared]
        The client's, and the server's of this round.
    change : float32 [shared]
        What the last round's training added to `own`.
    trained : int
        Elements before the running statistics.
    """

    own: Tensor
    server: Tensor
    change: Tensor
    trained: int

    @classmethod
    def zeros(cls, size: int, trained: int, device: torch.device | str) -> Controls:
        """Return those of a client before its first round."""
        own, server, change = torch.zeros(3, size, device=device)
        return cls(own, server, change, trained)

    def correct(self, hooks: ControlVariates, gradient: Tensor) -> None:
        """Add the correction to the gradient of the shared parameters [shared], in place."""
        part = slice(self.trained)
        gradient[part] += hooks.correction(self.own[part], self.server[part])

    def renew(self, hooks: ControlVariates, moved: Tensor, steps: int, lr: float) -> None:
        """Replace the client's control variate after local training.

        Parameters
        ----------
        hooks : ControlVariates
        moved : float32 [shared]
            Shared parameters after local training minus those before.
        steps : int
            Local steps taken.
        lr : float
            Length of a local step.
        """
        part = slice(self.trained)
        new = hooks.renewed(self.own[part], self.server[part], moved[part], steps, lr)
        self.change[part] = new - self.own[part]
        self.own[part] = new

    def state(self) -> Tensor:
        """Return what a checkpoint holds of both, float32 [2 shared]."""
        return torch.cat([self.own, self.server])

    def restore(self, state: npt.NDArray[np.float32]) -> None:
        """Take back what `state` returned."""
        own, server = torch.from_numpy(state.copy()).view(2, -1)
        self.own.copy_(own)
        self.server.copy_(server)
