"""Dropout whose masks are a function of (seed, client, round, step, layer, element)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
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

    def cells(self, layer: int, drop: float) -> tuple[np.uint64, int, int]:
        """Return a layer's stream, bits per element, and the least value of elements that are kept."""
        bits = 1 if drop == 0.5 else 8 if (drop * 256).is_integer() else 32
        return np.uint64(self._stream(layer)), bits, round(drop * 2**bits)

    def _stream(self, layer: int) -> int:
        return key(self.seed, Purpose.DROPOUT, self.client, self.round, self.step, layer)

    def apply(self, x: Tensor, layer: int, drop: float) -> Tensor:
        """Return x with a share `drop` of its elements zeroed and the rest scaled by 1 / (1 - drop)."""
        if drop == 0.0:
            return x
        keep = torch.from_numpy(keep_bits(self._stream(layer), x.numel(), drop)).view(x.shape)
        return x * keep.to(x.device, x.dtype).mul_(1.0 / (1.0 - drop))
