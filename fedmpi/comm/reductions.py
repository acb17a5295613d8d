"""How weighted deltas become one sum, whatever the order and the number of ranks.

``exact``: n_i delta_i (exact in float64) is rounded to int64 at the group's
exponent e = 61 - ceil(log2 k) - E, where k clients take part and every
|n_i delta_i| < 2^E; integer sums do not depend on their order and cannot
overflow. ``fixed32``: the same in 32 bits at a public exponent, for weights
n_i / n and elements clipped to [-clip, clip]. ``float32``: plain sums, whose
last bits depend on the ranks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled

if TYPE_CHECKING:
    from torch import Tensor

ZERO_EXPONENT = -(2**20)
"""Exponent reported by a client whose whole delta is zero: below that of any float."""

Floats = npt.NDArray[np.float64]
Delta = npt.NDArray[np.float32]


def weighted_exponent(delta: Delta, weight: int) -> int:
    """Return the least E with ``|weight * delta| < 2**E`` for all elements."""
    largest = float(max(delta.max(initial=0.0), -delta.min(initial=0.0))) * weight
    return math.frexp(largest)[1] if largest > 0 else ZERO_EXPONENT


@compiled
def _add_fixed(delta: Delta, weight: float, scale: float, bound: float, out: npt.NDArray[np.int64]) -> bool:
    """Add ``delta * weight * scale``, exact in float64 and rounded; False if an element is out of bounds."""
    beyond = 0
    for i in range(len(delta)):
        scaled = np.float64(delta[i]) * weight * scale
        beyond += int(not abs(scaled) <= bound)  # NaN too
        out[i] += np.int64(np.rint(scaled))
    return beyond == 0


@compiled
def _add_clipped(delta: Delta, clip: float, share: float, scale: float, out: npt.NDArray[np.int32]) -> None:
    """Add ``delta * share * scale``, elements cut at `clip`, in float64 and rounded."""
    for i in range(len(delta)):
        cut = min(max(np.float64(delta[i]), -clip), clip)
        out[i] += np.int32(np.rint(cut * share * scale))


class Exact:
    """Order-independent sums in 64-bit integers; the default."""

    dtype: ClassVar[Any] = np.int64

    def __init__(self, num_clients: int, exponent: int, total_weight: float) -> None:
        """Prepare for `num_clients` of largest exponent `exponent` and weights summing to `total_weight`."""
        headroom = int(np.ceil(np.log2(num_clients)))
        self._bits = 61 - headroom
        self._shift = 0 if exponent == ZERO_EXPONENT else self._bits - exponent
        self._total = total_weight

    def encode(self, delta: Delta, weight: float) -> npt.NDArray[Any]:
        """Return one client's summand."""
        summand = np.zeros(len(delta), np.int64)
        self.add(delta, weight, summand)
        return summand

    def add(self, delta: Delta, weight: float, total: npt.NDArray[Any]) -> None:
        """Add one client's summand to a sum, in place."""
        fits = _add_fixed(delta, float(weight), 2.0**self._shift, 2.0**self._bits, total)
        assert fits, "a delta exceeds its group's exponent"

    def encode_tensor(self, delta: Tensor, weight: float) -> Tensor:
        """Return the same summand for a delta on a device, without bringing it to the host."""
        return (delta.double() * float(weight) * 2.0**self._shift).round_().long()

    def decode(self, total: npt.NDArray[Any], weight: float | None = None) -> Floats:
        """Return the weighted mean from a sum of summands of this weight, by default all."""
        whole = self._total if weight is None else weight
        mean: Floats = total.astype(np.float64) * 2.0**-self._shift / whole
        return mean


class Float32:
    """Plain single-precision sums: half the bytes, not the same on every number of ranks."""

    dtype: ClassVar[Any] = np.float32

    def __init__(self, total_weight: float) -> None:
        self._total = total_weight

    def encode(self, delta: Delta, weight: float) -> npt.NDArray[Any]:
        """Return one client's summand."""
        return (delta * np.float32(weight)).astype(np.float32)

    def add(self, delta: Delta, weight: float, total: npt.NDArray[Any]) -> None:
        """Add one client's summand to a sum, in place."""
        total += self.encode(delta, weight)

    def encode_tensor(self, delta: Tensor, weight: float) -> Tensor:
        """Return the same summand for a delta on a device."""
        return delta * float(weight)

    def decode(self, total: npt.NDArray[Any], weight: float | None = None) -> Floats:
        """Return the weighted mean from a sum of summands of this weight, by default all."""
        return total.astype(np.float64) / (self._total if weight is None else weight)


class Fixed32:
    """Order-independent sums in 32-bit integers at a public exponent."""

    dtype: ClassVar[Any] = np.int32

    def __init__(self, total_weight: float, clip: float) -> None:
        self._total = total_weight
        self._clip = clip
        self._shift = 29 - int(np.ceil(np.log2(clip)))

    @property
    def step(self) -> float:
        """Step of the grid to which summands are rounded."""
        return 2.0**-self._shift

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return self._total

    def encode(self, delta: Delta, weight: float) -> npt.NDArray[Any]:
        """Return one client's summand; elements beyond the clip are cut."""
        summand = np.zeros(len(delta), np.int32)
        self.add(delta, weight, summand)
        return summand

    def add(self, delta: Delta, weight: float, total: npt.NDArray[Any]) -> None:
        """Add one client's summand to a sum, in place."""
        _add_clipped(delta, self._clip, weight / self._total, 2.0**self._shift, total)

    def encode_tensor(self, delta: Tensor, weight: float) -> Tensor:
        """Return the same summand for a delta on a device."""
        share = delta.double().clamp(-self._clip, self._clip) * (weight / self._total)
        return (share * 2.0**self._shift).round_().int()

    def decode(self, total: npt.NDArray[Any], weight: float | None = None) -> Floats:
        """Return the weighted mean from a sum of summands of this weight, by default all."""
        mean = np.ldexp(total.astype(np.float64), -self._shift)
        return mean if weight is None else mean * (self._total / weight)


Reduction = Exact | Float32 | Fixed32


def make(
    name: str, num_clients: int, exponent: int, total_weight: float, clip: float | None = None
) -> Reduction:
    """Return the reduction `name` for one group of one round.

    Parameters
    ----------
    name : str
    num_clients : int
        Clients behind the sum.
    exponent : int
        Largest exponent of their weighted deltas; read by "exact".
    total_weight : float
    clip : float, optional
        Of "fixed32", and of no other.
    """
    if name == "exact":
        return Exact(num_clients, exponent, total_weight)
    if name == "float32":
        return Float32(total_weight)
    assert clip is not None
    return Fixed32(total_weight, clip)
