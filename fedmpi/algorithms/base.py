"""The hooks of an algorithm, with FedAvg's behaviour as default (imports without torch)."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from fedmpi.seeds import Purpose, key, permutation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Vector(Protocol):
    """What an algorithm may do with a flat float32 vector of shared parameters (a torch tensor)."""

    def add_(self, other: Any, *, alpha: float = 1.0) -> Any:
        """Add ``alpha * other`` in place."""

    def __sub__(self, other: Any) -> Any: ...


class AlgorithmOptions(BaseModel):
    """Options that a suite may set in the case's `algorithm` table."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    name: str


class Algorithm:
    """Base of all algorithms.

    Subclasses name themselves (`name`), may bring their own `Options`, and
    override the hooks they need. Hooks are pure: what they return depends on
    their arguments and the options alone, so every rank gets the same answer.
    """

    name: ClassVar[str]
    Options: ClassVar[type[AlgorithmOptions]] = AlgorithmOptions
    communicates: ClassVar[bool] = True
    """False: after the common start no parameters travel and each client keeps what it trained."""
    penalises: ClassVar[bool] = False
    """True: `penalty` is called at each local step."""

    def __init__(self, options: AlgorithmOptions) -> None:
        self.options = options

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """Return the clients that train in this round, ascending: a sample without replacement."""
        count = max(1, round_half_up(fraction * num_clients))
        if count >= num_clients:
            return np.arange(num_clients, dtype=np.int64)
        stream = key(seed, Purpose.PARTICIPATION, round)
        return np.sort(permutation(stream, num_clients)[:count])

    def groups(self, num_clients: int) -> Ints:
        """Return the group of each client at the start, int64 [clients]; group models are averaged apart."""
        return np.zeros(num_clients, dtype=np.int64)

    def penalty(self, parameters: Vector, reference: Vector, gradient: Vector) -> None:
        """Add the gradient of a penalty on the shared parameters to `gradient`, in place.

        Parameters
        ----------
        parameters, reference, gradient : float32 [shared]
            Current parameters, those received at the start of the round, and
            the gradient of the local loss.
        """

    def update(self, model: npt.NDArray[np.float32], mean: Floats) -> npt.NDArray[np.float32]:
        """Return a group's next model from its present one and the weighted mean of its deltas.

        Parameters
        ----------
        model : float32 [shared]
        mean : float64 [shared]
        """
        return (model + mean).astype(np.float32)


def round_half_up(value: float) -> int:
    """Round to the nearest integer, halves up."""
    return int(np.floor(value + 0.5))
