"""What cannot be together in a case: rules of the exchange, and a file for each axis that others limit."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.schema import Case, Misfits
from fedmpi.registry.checks import algorithm as algorithms
from fedmpi.registry.checks import attack, exchange, population, privacy, record, reduction


def misfits(algorithm: Algorithm, case: Case) -> Misfits:
    """Yield the settings that cannot be with the others, and what to do."""
    yield from algorithms.misfits(algorithm, case)
    if (found := exchange.check(algorithm, case)) is not None:
        yield found
    yield from record.misfits(case)
    yield from reduction.misfits(algorithm, case)
    yield from attack.misfits(case)
    yield from privacy.misfits(case)
    yield from population.misfits(case)
