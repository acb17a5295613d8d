"""What a compressor does for the exchange: bytes that travel, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.config.options import Options

Vector = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Shape = tuple[int, ...]
Mean = Callable[[dict[int, Vector], int], Floats]
"""Weighted mean over all participants of one vector each, of so many elements, on every rank (a collective
call)."""


class CompressionOptions(Options):
    """Base of the options of all compressors.

    Attributes
    ----------
    biased : bool
        Whether much of an update is left out, or wrong in the mean: error feedback by default.
    linear : bool
        Whether the coefficients of clients may be added before they are decoded; see `Linear`.
    pooled : bool
        Whether the basis is made of all clients' updates, so that none can be decoded without the others.
    """

    feedback: bool | None = None
    """Whether what compression left out goes with the next update (error feedback, Karimireddy et al. 2019);
    by default where the compressor is biased."""

    biased: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    pooled: ClassVar[bool] = False

    @property
    def contracts(self) -> bool:
        """Whether no update becomes longer, in the 2-norm."""
        return False

    @property
    def approaches(self) -> bool:
        """Whether what is decoded is nearer to an update than 0 is, by the mean squared 2-norm."""
        return True

    @property
    def residual(self) -> bool:
        """Whether there is error feedback."""
        return self.biased if self.feedback is None else self.feedback

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor | None:
        """Return the compressor of tensors of these shapes, or none; `stream` draws how it begins."""
        raise NotImplementedError


class Compressor:
    """Base of the compressors that send a client's update alone; d elements in all.

    Parameters
    ----------
    shapes : sequence of tuples of int
        Of the tensors that make up an update, in order.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = tuple(shapes)
        self.sizes = [int(np.prod(shape)) for shape in shapes]
        self.size = sum(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes that travel of an update; the same for all."""
        raise NotImplementedError

    @property
    def summed(self) -> int:
        """Elements that are summed."""
        return self.size

    @property
    def received_bytes(self) -> int:
        """Bytes that each client gets in a round, so that it can compress."""
        return 0

    def encode(self, update: Vector, stream: int) -> Bytes:
        """Return what travels of an update, float32 [d], as uint8 [nbytes].

        `stream` is the key of what is drawn (`fedmpi.seeds`): the client's own in the round.
        """
        raise NotImplementedError

    def decode(self, sent: Bytes) -> Vector:
        """Return what the server makes of it, float32 [d]."""
        raise NotImplementedError

    def largest(self, sent: Bytes) -> float:
        """Return the largest magnitude of what is summed in the update's place; 0: that is summed itself."""
        return 0.0


class Linear(Compressor):
    """Base of the compressors whose coefficients can be added: all clients use one basis in a round."""

    @property
    def coefficients(self) -> int:
        """Number of coefficients of an update."""
        raise NotImplementedError

    @property
    def summed(self) -> int:
        """Elements that are summed."""
        return self.coefficients

    @property
    def nbytes(self) -> int:
        """Bytes that travel of an update: its coefficients, and what the basis took."""
        return 4 * self.coefficients

    def begin(self, coefficients: Vector) -> None:
        """Go on from the mean coefficients of the round before, float32 [coefficients or more]."""

    def prepare(self, updates: dict[int, Vector], stream: int, mean: Mean) -> None:
        """Choose the basis of a round, the same on every rank (a collective call).

        Parameters
        ----------
        updates : dict of int to float32 [d]
            Of the participants that this rank hosts.
        stream : int
            Key of what is drawn, all clients' in the round.
        mean : callable
        """
        raise NotImplementedError

    def project(self, update: Vector) -> Vector:
        """Return the coefficients of an update, float32 [coefficients]."""
        raise NotImplementedError

    def expand(self, coefficients: Floats | Vector) -> Floats:
        """Return what coefficients, or their mean, stand for, float64 [d]."""
        raise NotImplementedError

    def encode(self, update: Vector, stream: int) -> Bytes:
        """Return the coefficients as bytes."""
        return self.project(update).astype("<f4").view(np.uint8)

    def decode(self, sent: Bytes) -> Vector:
        """See `Compressor`."""
        return self.expand(sent.view("<f4")).astype(np.float32)

    def largest(self, sent: Bytes) -> float:
        """Return the largest magnitude of the coefficients."""
        return float(np.abs(sent.view("<f4")).max(initial=0.0))
