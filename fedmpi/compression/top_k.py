"""The elements of largest magnitude alone (Stich, Cordonnier and Jaggi, NeurIPS 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.compression.base import Bytes, CompressionOptions, Compressor, Shape, Vector


class TopKOptions(CompressionOptions):
    """The k elements of largest magnitude."""

    paper: ClassVar[str] = "Stich et al. 2018"
    biased: ClassVar[bool] = True
    name: Literal["top-k"] = "top-k"
    share: float = Field(0.01, gt=0, le=1)
    """Share of the elements that travel, rounded, one at least."""

    @property
    def contracts(self) -> bool:
        """Elements are left out."""
        return True

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return TopK(shapes, self.share)


def kept(size: int, share: float) -> int:
    """Return how many of `size` elements a share is: rounded, one at least."""
    return min(size, max(1, int(np.floor(share * size + 0.5))))


class TopK(Compressor):
    """The k elements of largest magnitude; of equal ones those that come first.

    Their places travel as int32 or as a bitmap, whichever is smaller.
    """

    def __init__(self, shapes: Sequence[Shape], share: float) -> None:
        super().__init__(shapes)
        self.k = kept(self.size, share)
        self._bitmap = -(-self.size // 8) < 4 * self.k

    @property
    def nbytes(self) -> int:
        """Bytes of the values and of their places."""
        return 4 * self.k + (-(-self.size // 8) if self._bitmap else 4 * self.k)

    def encode(self, update: Vector, stream: int) -> Bytes:
        """See `Compressor`."""
        magnitudes = np.abs(update)
        least = np.partition(magnitudes, self.size - self.k)[self.size - self.k]
        chosen = magnitudes > least
        equal = np.flatnonzero(magnitudes == least)
        chosen[equal[: self.k - int(chosen.sum())]] = True
        places = np.packbits(chosen, bitorder="little")
        if not self._bitmap:
            places = np.flatnonzero(chosen).astype("<i4").view(np.uint8)
        return np.concatenate([update[chosen].astype("<f4").view(np.uint8), places])

    def decode(self, sent: Bytes) -> Vector:
        """See `Compressor`."""
        values, places = sent[: 4 * self.k].view("<f4"), sent[4 * self.k :]
        update = np.zeros(self.size, np.float32)
        if self._bitmap:
            update[np.unpackbits(places, count=self.size, bitorder="little").astype(bool)] = values
        else:
            update[places.view("<i4")] = values
        return update
