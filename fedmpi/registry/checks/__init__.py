"""What cannot be together in a case: rules of the exchange, and a file for each axis that others limit."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.schema import Case
from fedmpi.registry.checks import algorithm as algorithms
from fedmpi.registry.checks import attack, exchange, population, privacy, record, reduction

_CHECKS = (
    algorithms.check,
    exchange.check,
    record.check,
    reduction.check,
    attack.check,
    privacy.check,
    population.check,
)


def first_misfit(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting that cannot be with the others, and what to do; None where all fit."""
    found = (check(algorithm, case) for check in _CHECKS)
    return next((each for each in found if each is not None), None)
