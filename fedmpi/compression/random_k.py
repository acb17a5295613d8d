"""Elements that all clients draw alike (Stich, Cordonnier and Jaggi, NeurIPS 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.compression.base import CompressionOptions, Compressor, Floats, Linear, Mean, Shape, Vector
from fedmpi.compression.top_k import kept
from fedmpi.seeds import words


class RandomKOptions(CompressionOptions):
    """k elements, the same of all clients in a round: no places travel, and sums are of k elements."""

    paper: ClassVar[str] = "Stich et al. 2018"
    linear: ClassVar[bool] = True
    name: Literal["random-k"] = "random-k"
    share: float = Field(0.1, gt=0, le=1)
    """Share of the elements that travel, rounded, one at least."""
    scaled: bool = True
    """Whether elements are multiplied by d / k, so that their mean is right."""

    @property
    def residual(self) -> bool:
        """Whether there is error feedback: by default without the scale."""
        return not self.scaled if self.feedback is None else self.feedback

    @property
    def contracts(self) -> bool:
        """Elements are left out, but those that stay may be scaled."""
        return not self.scaled

    @property
    def approaches(self) -> bool:
        """The error is d / k - 1 of the update's squared norm with the scale, 1 - k / d without."""
        return not self.scaled or self.share > 0.5

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return RandomK(shapes, self.share, scaled=self.scaled)


class RandomK(Linear):
    """k elements, the same of all clients in a round, so that no places travel and values are added.

    `scaled` multiplies what is decoded by d / k, so that its mean is right; without, no update gets longer.
    """

    def __init__(self, shapes: Sequence[Shape], share: float, *, scaled: bool) -> None:
        super().__init__(shapes)
        self.k, self._places = kept(self.size, share), np.zeros(0, np.int64)
        self._factor = self.size / self.k if scaled else 1.0

    @property
    def coefficients(self) -> int:
        """See `Linear`."""
        return self.k

    def prepare(self, updates: dict[int, Vector], stream: int, mean: Mean) -> None:
        """Draw the places; nothing travels."""
        drawn = words(stream, self.size)
        self._places = np.sort(np.argsort(drawn, kind="stable")[: self.k])

    def project(self, update: Vector) -> Vector:
        """See `Linear`."""
        return update[self._places].copy()

    def expand(self, coefficients: Floats | Vector) -> Floats:
        """See `Linear`."""
        update = np.zeros(self.size)
        update[self._places] = coefficients
        update *= self._factor
        return update
