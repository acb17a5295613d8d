"""PowerSGD: matrices as products of thin ones (Vogels, Karimireddy and Jaggi, NeurIPS 2019, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.compression.base import CompressionOptions, Compressor, Floats, Linear, Mean, Shape, Vector
from fedmpi.seeds import generator


class PowerSgdOptions(CompressionOptions):
    """Matrices as products of thin ones, in two sums a round."""

    paper: ClassVar[str] = "Vogels et al. 2019"
    biased: ClassVar[bool] = True
    linear: ClassVar[bool] = True
    pooled: ClassVar[bool] = True
    name: Literal["powersgd"] = "powersgd"
    rank: int = Field(2, ge=1, le=1024)
    """Columns of the thin matrices."""

    def make(self, shapes: Sequence[Shape], stream: int) -> Compressor:
        """See `CompressionOptions`."""
        return PowerSgd(shapes, self.rank, stream)


class PowerSgd(Linear):
    """A tensor [n, ...] is a matrix M [n, m], and P Q^T of rank r stands for it.

    A round takes one step of the power method: P is the orthonormal basis of the mean of M Q, with Q of the
    round before; the coefficients of a client are M^T P. Tensors of which this would save nothing travel as
    they are.

    Attributes
    ----------
    q : float32 [*]
        The Q of all matrices, one behind the other; kept from round to round.
    """

    def __init__(self, shapes: Sequence[Shape], rank: int, stream: int) -> None:
        super().__init__(shapes)
        ends = np.cumsum([0, *self.sizes])
        self._matrices: list[tuple[slice, int, int, int]] = []
        whole = np.ones(self.size, bool)
        for shape, start, stop in zip(self.shapes, ends, ends[1:], strict=False):
            rows, columns = (shape[0], (stop - start) // shape[0]) if len(shape) > 1 else (stop - start, 1)
            r = min(rank, rows, columns)
            if r * (rows + columns) < rows * columns:
                self._matrices.append((slice(int(start), int(stop)), rows, int(columns), r))
                whole[start:stop] = False
        self._whole = np.flatnonzero(whole)
        self._p = np.zeros(sum(rows * r for _, rows, _, r in self._matrices))
        numbers = sum(m * r for _, _, m, r in self._matrices)
        self.q = self._drawn = generator(stream).standard_normal(numbers).astype(np.float32)

    @property
    def coefficients(self) -> int:
        """Elements of all M^T P, and those of tensors that travel as they are."""
        return len(self.q) + len(self._whole)

    @property
    def nbytes(self) -> int:
        """Bytes of an update's M Q and of its coefficients."""
        return 4 * (len(self._p) + self.coefficients)

    @property
    def received_bytes(self) -> int:
        """Bytes of P, and of the mean Q, where the next round begins."""
        return 4 * (len(self._p) + len(self.q))

    def begin(self, coefficients: Vector) -> None:
        """Take over Q."""
        self.q = coefficients[: len(self.q)].copy()

    def _split(self, update: Floats, p: Floats, q: Floats) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield each matrix M [n, m] with its P [n, r] and Q [m, r], all views."""
        at_p = at_q = 0
        for place, rows, columns, r in self._matrices:
            end_p, end_q = at_p + rows * r, at_q + columns * r
            matrix = update[place].reshape(rows, columns)
            yield matrix, p[at_p:end_p].reshape(rows, r), q[at_q:end_q].reshape(columns, r)
            at_p, at_q = end_p, end_q

    def prepare(self, updates: dict[int, Vector], stream: int, mean: Mean) -> None:
        """Make the P of a round from the mean of the participants' M Q."""
        products, q = {}, self.q.astype(np.float64)
        nothing, drawn = np.zeros(self.size), self._drawn.astype(np.float64)
        of_q, of_draw = (self._split(nothing, np.zeros_like(self._p), each) for each in (q, drawn))
        for (_, _, given), (_, _, fresh) in zip(of_q, of_draw, strict=True):
            _orthonormalise(given, fresh)
        for client, update in updates.items():
            sent = np.zeros_like(self._p)
            for matrix, product, given in self._split(update.astype(np.float64), sent, q):
                product[:] = _product(matrix, given)
            products[client] = sent.astype(np.float32)
        self._p = mean(products, len(self._p))
        for _, basis, _ in self._split(nothing, self._p, q):
            _orthonormalise(basis, np.zeros_like(basis))

    def project(self, update: Vector) -> Vector:
        """Return M^T P of each matrix, and what travels as it is."""
        made = np.zeros(len(self.q))
        for matrix, basis, coefficients in self._split(update.astype(np.float64), self._p, made):
            coefficients[:] = _product(matrix.T, basis)
        return np.concatenate([made, update[self._whole]]).astype(np.float32)

    def expand(self, coefficients: Floats | Vector) -> Floats:
        """Return P Q^T of each matrix, and what travels as it is."""
        update, q = np.zeros(self.size), coefficients[: len(self.q)].astype(np.float64)
        update[self._whole] = coefficients[len(self.q) :]
        for matrix, basis, given in self._split(update, self._p, q):
            matrix[:] = _product(basis, given.T)
        return update


def _product(a: Floats, b: Floats) -> Floats:
    """Return a product whose bits do not depend on the processor: sums in the order of the index.

    The shorter loop is Python's. Sums begin with 0, so that none is -0.
    """
    if b.shape[1] < a.shape[1]:
        return np.stack([np.cumsum(a * column, axis=1)[:, -1] for column in b.T], axis=1) + 0.0
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[None, k]
    return total


def _orthonormalise(basis: Floats, fresh: Floats) -> None:
    """Make the columns of [n, r] orthonormal in place, by Gram and Schmidt.

    One that depends on those before it gives way to that of `fresh` [n, r], or to 0.
    """
    for column in range(basis.shape[1]):
        for own in (basis[:, column].copy(), fresh[:, column].copy()):
            before = np.sqrt(np.cumsum(own * own)[-1])
            for other in range(column):
                own -= np.cumsum(own * basis[:, other])[-1] * basis[:, other]
            norm = np.sqrt(np.cumsum(own * own)[-1])
            basis[:, column] = own / norm if norm > 1e-12 * before else 0.0
            if basis[:, column].any():
                break
