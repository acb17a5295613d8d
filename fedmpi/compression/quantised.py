"""Few levels an element, chosen at random so that the mean is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedmpi.compression.base import Bytes, Compressor, Shape, Vector
from fedmpi.compression.bits import pack, packed_size, uniform, unpack


class Blocks(Compressor):
    """Blocks of elements, each with a scale of its own: element = level * scale.

    `levels` numbers from -levels to levels; a block's scale is `_scales`.
    """

    def __init__(self, shapes: Sequence[Shape], levels: int, block: int) -> None:
        super().__init__(shapes)
        self._levels, self._block = levels, block
        self._blocks, self._bits = -(-self.size // block), (2 * levels).bit_length()

    @property
    def nbytes(self) -> int:
        """Bytes of the levels, and four a block."""
        return packed_size(self.size, self._bits) + 4 * self._blocks

    def _scales(self, blocks: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return what the largest level of each block stands for: [blocks, block] to [blocks]."""
        raise NotImplementedError

    def encode(self, update: Vector, stream: int) -> Bytes:
        """See `Compressor`; an element is rounded up with the probability that makes its mean right."""
        blocks = np.zeros((self._blocks, self._block))
        blocks.reshape(-1)[: self.size] = update
        scales = self._scales(blocks).astype("<f4")
        steps = scales.astype(np.float64)[:, None] / self._levels
        shares = np.divide(blocks, steps, out=np.zeros_like(blocks), where=steps > 0)
        drawn = np.floor(shares.reshape(-1)[: self.size] + uniform(stream, self.size))
        levels = np.clip(drawn, -self._levels, self._levels).astype(np.int64)
        return np.concatenate([scales.view(np.uint8), pack(levels + self._levels, self._bits)])

    def decode(self, sent: Bytes) -> Vector:
        """See `Compressor`."""
        scales = sent[: 4 * self._blocks].view("<f4").astype(np.float64)
        levels = unpack(sent[4 * self._blocks :], self.size, self._bits) - self._levels
        return (levels * np.repeat(scales / self._levels, self._block)[: self.size]).astype(np.float32)
