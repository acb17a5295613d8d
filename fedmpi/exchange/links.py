"""The links of the chain in their order, and what their classes declare for a case (imports without MPI)."""

from __future__ import annotations

from fedmpi.case.schema import Case
from fedmpi.exchange.attacks import Attackers
from fedmpi.exchange.compression import Compression
from fedmpi.exchange.link import Link
from fedmpi.exchange.privacy import Clipping, NoiseOfMeans
from fedmpi.programs.hooks import Hooks
from fedmpi.store.schema import GENERATED_NODES, Field

LINKS: tuple[type[Link], ...] = (Attackers, Clipping, Compression, NoiseOfMeans)


def fields_of(case: Case, hooks: Hooks) -> tuple[Field, ...]:
    """Return the fields of a record that the exchange adds: of the links, and of nodes that clients add."""
    fields = [field for link in LINKS for field in link.fields(case)]
    return (*fields, *((GENERATED_NODES,) if hooks.prepares else ()))


def state_of(case: Case) -> tuple[str, ...]:
    """Return the names of the vectors, float32 [shared], that each client keeps for the links."""
    return tuple(name for link in LINKS for name in link.state(case))
