"""A link of the chain between training and the next model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.store.schema import Field

if TYPE_CHECKING:  # what is refused before MPI starts must not import it
    from fedmpi.exchange.updates import Updates

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Link:
    """Base of all links; this one leaves everything as it is.

    Attributes
    ----------
    phase : str
        Of the meter, to which its seconds belong.
    """

    phase: ClassVar[str] = "train"

    @classmethod
    def fields(cls, case: Case) -> tuple[Field, ...]:
        """Return the link's fields of the record."""
        return ()

    @classmethod
    def state(cls, case: Case) -> tuple[str, ...]:
        """Return the names of the vectors, float32 [shared], that each client keeps for the link."""
        return ()

    def nbytes(self, size: int, nbytes: int) -> int:
        """Return the bytes that an update of `size` parameters takes behind the link, `nbytes` before it."""
        return nbytes

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Change what the participants of a round (0-based), int64 [k], send (a collective call)."""

    def on_mean(self, group: int, mean: Floats) -> Floats:
        """Return what the server makes of the mean of a group, float64 [shared]."""
        return mean

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the values of the link's fields, on rank 0."""
        return {}
