"""Numbers of 16 bits: float16 (IEEE 754) and bfloat16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fedmpi.compression.base import Bytes, CompressionOptions, Compressor, Shape, Vector


class Float16Options(CompressionOptions):
    """IEEE 754's half precision, rounded to nearest."""

    name: Literal["float16"] = "float16"

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return Float16(shapes)


class Bfloat16Options(CompressionOptions):
    """The upper half of single precision, rounded to nearest."""

    name: Literal["bfloat16"] = "bfloat16"

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return Bfloat16(shapes)


class _Halves(Compressor):
    @property
    def nbytes(self) -> int:
        """Two bytes an element."""
        return 2 * self.size


class Float16(_Halves):
    """float16, rounded to nearest; what is beyond its range becomes its largest number."""

    def encode(self, update: Vector, stream: int) -> Bytes:
        """See `Compressor`."""
        largest = float(np.finfo(np.float16).max)
        return np.clip(update, -largest, largest).astype("<f2").view(np.uint8)

    def decode(self, sent: Bytes) -> Vector:
        """See `Compressor`."""
        return sent.view("<f2").astype(np.float32)


class Bfloat16(_Halves):
    """bfloat16: float32's upper 16 bits, rounded to nearest, ties to even."""

    def encode(self, update: Vector, stream: int) -> Bytes:
        """See `Compressor`; what would round to infinity is cut."""
        bits = np.ascontiguousarray(update).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        overflowed = (rounded & np.uint32(0x7FFF)) == np.uint32(0x7F80)
        return np.where(overflowed, rounded - np.uint32(1), rounded).astype("<u2").view(np.uint8)

    def decode(self, sent: Bytes) -> Vector:
        """See `Compressor`."""
        return (sent.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
