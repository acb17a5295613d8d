"""Fields of a record that the exchange adds (imports without MPI)."""

from __future__ import annotations

from fedmpi.case.attacks import NoAttack
from fedmpi.case.privacy import Private
from fedmpi.case.schema import Case
from fedmpi.exchange.attacks import ATTACKER
from fedmpi.exchange.privacy import EPSILON
from fedmpi.programs.hooks import Hooks
from fedmpi.store.schema import GENERATED_NODES, Field


def fields_of(case: Case, hooks: Hooks) -> tuple[Field, ...]:
    """Return the fields of attackers, of the privacy loss, and of nodes that clients add."""
    attacked = () if isinstance(case.attack, NoAttack) else (ATTACKER,)
    private = (EPSILON,) if isinstance(case.privacy, Private) else ()
    return (*attacked, *private, *((GENERATED_NODES,) if hooks.prepares else ()))
