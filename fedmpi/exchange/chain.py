"""What becomes of an update between training and the sum: one chain, a link for each thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.schema import Case
from fedmpi.exchange import attacks, privacy
from fedmpi.exchange.attacks import Attackers
from fedmpi.exchange.privacy import Clipping, NoiseOfMeans
from fedmpi.store.schema import Field

if TYPE_CHECKING:  # what is refused before MPI starts must not import it
    from fedmpi.client.states import States
    from fedmpi.comm.world import World
    from fedmpi.exchange.meter import Meter
    from fedmpi.exchange.updates import Updates

Ints = npt.NDArray[np.int64]


class Link(Protocol):
    """A link of the chain.

    Attributes
    ----------
    phase : str
        Of the meter, to which its seconds belong.
    """

    phase: ClassVar[str]

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Change what the participants of a round (0-based), int64 [k], send (a collective call)."""

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the values of the link's fields of the record, on rank 0."""


class Chain:
    """The links of a run, in their order: attack, clipping, noise.

    Sums follow: `fedmpi.exchange.averaging` encodes or masks what the chain leaves, and asks its `noise`.

    Parameters
    ----------
    case : Case
    world : World
    states : States
    meter : Meter
    num_clients, sampled : int
        Of whom so many take part in each round.

    Attributes
    ----------
    noise : NoiseOfMeans or None
        What makes the means differentially private.
    """

    def __init__(
        self, case: Case, world: World, states: States, meter: Meter, num_clients: int, sampled: int
    ) -> None:
        self._meter, size = meter, states.trained
        self.noise = None
        links: list[Link] = [Attackers(case, states.hosts, world.collectives, size)]
        if isinstance(case.privacy, Clipped):
            links.append(Clipping(case.privacy.clip))
        if isinstance(case.privacy, Private):
            self.noise = NoiseOfMeans(case, size, num_clients, sampled, is_root=world.is_root)
            links.append(self.noise)
        self._links: Sequence[Link] = links

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Change what the participants of a round (0-based), int64 [k], send (a collective call)."""
        for link in self._links:
            with self._meter.phase(link.phase):
                link.alter(round, participants, updates)

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the values of all links' fields of the record, on rank 0."""
        return {name: value for link in self._links for name, value in link.rows(round).items()}


def fields_of(case: Case) -> tuple[Field, ...]:
    """Return the fields of a record that the chain adds."""
    return (*attacks.fields_of(case), *privacy.fields_of(case))
