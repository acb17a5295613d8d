"""Signs, times each tensor's mean magnitude (Karimireddy et al., ICML 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from fedmpi.compression.base import Bytes, CompressionOptions, Compressor, Shape, Vector


class SignOptions(CompressionOptions):
    """A bit an element, times each tensor's mean magnitude."""

    paper: ClassVar[str] = "Karimireddy et al. 2019"
    biased: ClassVar[bool] = True
    name: Literal["sign"] = "sign"

    @property
    def contracts(self) -> bool:
        """A mean magnitude is at most the root of the mean square."""
        return True

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return Sign(shapes)


class Sign(Compressor):
    """A bit an element, and a magnitude a tensor; 0 counts as positive.

    Without error feedback it does not converge in general.
    """

    @property
    def nbytes(self) -> int:
        """Bytes of the signs, and four a tensor."""
        return -(-self.size // 8) + 4 * len(self.sizes)

    def encode(self, update: Vector, stream: int) -> Bytes:
        """See `Compressor`; a magnitude is rounded towards 0, so that nothing becomes longer."""
        tensors = np.split(np.abs(update.astype(np.float64)), np.cumsum(self.sizes)[:-1])
        means = np.array([tensor.mean() if len(tensor) else 0.0 for tensor in tensors])
        magnitudes = means.astype("<f4")
        magnitudes = np.where(magnitudes > means, np.nextafter(magnitudes, np.float32(0)), magnitudes)
        return np.concatenate([magnitudes.view(np.uint8), np.packbits(update >= 0, bitorder="little")])

    def decode(self, sent: Bytes) -> Vector:
        """See `Compressor`."""
        first = 4 * len(self.sizes)
        magnitudes = np.repeat(sent[:first].view("<f4"), self.sizes).astype(np.float32)
        positive = np.unpackbits(sent[first:], count=self.size, bitorder="little").astype(bool)
        return np.where(positive, magnitudes, -magnitudes)
