"""Dropout whose masks are a function of (seed, client, round, step, layer, element)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedmpi.seeds import Purpose, keep_bits, key


@dataclass(frozen=True)
class DropoutStreams:
    """Masks of one training step; every kernel that asks for a layer gets the same bits."""

    seed: int
    client: int
    round: int
    step: int

    def apply(self, x: Tensor, layer: int, drop: float) -> Tensor:
        """Return x with a share `drop` of its elements zeroed and the rest scaled by 1 / (1 - drop)."""
        if drop == 0.0:
            return x
        stream = key(self.seed, Purpose.DROPOUT, self.client, self.round, self.step, layer)
        keep = torch.from_numpy(keep_bits(stream, x.numel(), drop)).view(x.shape)
        return x * keep.to(x.device, x.dtype).mul_(1.0 / (1.0 - drop))
