"""Models on their way down as packed changes; who gets them holds replicas (Tang et al., ICML 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.client.deltas import Row
from fedmpi.compression.base import Bytes, Compressor, Linear
from fedmpi.seeds import Purpose, key

_NOT_FINITE = np.uint8(255)


@dataclass(eq=False)
class DownLink:
    """Packs the change of a group's model, and moves replicas by what is decoded of it.

    Parameters
    ----------
    compressor : Compressor
        Of the parameters; what is behind them, such as running statistics, travels as it is.
    seed : int
    size : int
        Elements of a model with all that follows the parameters.
    residuals : float32 [groups, parameters] or None
        What was left out, which goes with the next change; on rank 0. None: no error feedback.
    """

    compressor: Compressor
    seed: int
    size: int
    residuals: npt.NDArray[np.float32] | None

    @property
    def nbytes(self) -> int:
        """Bytes that travel of a model."""
        return self.compressor.nbytes + 4 * (self.size - self.compressor.size)

    def pack(self, round: int, group: int, present: Row, model: Row) -> Bytes:
        """Return what travels where a model, float32 [size], is to take the place of the present replica.

        All bits set stand for a change that is not finite: the numbers that compressors send are finite.
        """
        length = self.compressor.size
        with np.errstate(over="ignore", invalid="ignore"):
            change = model[:length] - present[:length]
            if self.residuals is not None:
                change += self.residuals[group]
        if not np.isfinite(change).all():
            return np.full(self.nbytes, _NOT_FINITE)
        sent = self.compressor.encode(change, self._begin(round, group))
        if self.residuals is not None:
            self.residuals[group] = change - self.compressor.decode(sent)
        return np.concatenate([sent, np.ascontiguousarray(model[length:]).view(np.uint8)])

    def moved(self, round: int, group: int, present: Row, packed: Bytes) -> Row:
        """Return a replica, float32 [size], after what arrived; NaN where the model is not finite."""
        if (packed == _NOT_FINITE).all():
            return np.full(self.size, np.nan, np.float32)
        self._begin(round, group)
        change, length = self.compressor.decode(packed[: self.compressor.nbytes]), self.compressor.size
        return np.concatenate([present[:length] + change, packed[self.compressor.nbytes :].view(np.float32)])

    def regroup(self, origin: int, group: int) -> None:
        """Have a part of a split group begin with what was left out of the whole one."""
        if self.residuals is not None:
            self.residuals[group] = self.residuals[origin]

    def _begin(self, round: int, group: int) -> int:
        stream = key(self.seed, Purpose.DOWN_COMPRESSION, round, group)
        if isinstance(self.compressor, Linear):
            self.compressor.prepare({}, stream, lambda vectors, size: np.zeros(size))
        return stream
