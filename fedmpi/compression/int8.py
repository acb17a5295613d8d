"""Eight bits an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from fedmpi.compression.base import CompressionOptions, Compressor, Floats, Shape
from fedmpi.compression.quantised import Blocks


class Int8Options(CompressionOptions):
    """127 levels each way of a block's largest magnitude, drawn at random so that the mean is right."""

    name: Literal["int8"] = "int8"
    block: int = Field(256, ge=1, le=1_000_000)
    """Elements that share a scale."""

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return Int8(shapes, 127, self.block)


class Int8(Blocks):
    """A block's scale is its largest magnitude."""

    def _scales(self, blocks: Floats) -> Floats:
        largest: Floats = np.abs(blocks).max(1)
        return largest
