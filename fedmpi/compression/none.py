"""Nothing is compressed: what travels is in single precision, or as the reduction sends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from fedmpi.compression.base import Compressor, Shape
from fedmpi.config.options import Options


class NoCompression(Options):
    """What travels is as it was made."""

    name: Literal["none"] = "none"

    residual: ClassVar[bool] = False
    linear: ClassVar[bool] = True
    pooled: ClassVar[bool] = False
    contracts: ClassVar[bool] = True

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor | None:
        """Return none."""
        return None
