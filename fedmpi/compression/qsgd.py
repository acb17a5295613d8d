"""QSGD (Alistarh et al., NeurIPS 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.compression.base import CompressionOptions, Compressor, Floats, Shape
from fedmpi.compression.quantised import Blocks


class QsgdOptions(CompressionOptions):
    """Levels of a block's 2-norm, drawn at random so that the mean is right; codes of fixed length."""

    paper: ClassVar[str] = "Alistarh et al. 2017"
    name: Literal["qsgd"] = "qsgd"
    levels: int = Field(4, ge=1, le=32_767)
    """Levels s each way: an element takes log2(2 s + 1) bits, rounded up."""
    block: int = Field(512, ge=1, le=1_000_000)
    """Elements that share a norm."""

    @property
    def approaches(self) -> bool:
        """An element's mean squared error is a quarter of a step's square at most, a step the norm over s."""
        return self.block < 4 * self.levels**2

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return Qsgd(shapes, self.levels, self.block)


class Qsgd(Blocks):
    """A block's scale is its 2-norm (section 3.1)."""

    def _scales(self, blocks: Floats) -> Floats:
        norms: Floats = np.sqrt(np.cumsum(blocks * blocks, axis=1)[:, -1])
        return norms
