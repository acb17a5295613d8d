"""What cannot be together in a case: rules of the exchange, of algorithms, of sums, and of settings alone."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.schema import Case, Misfits
from fedmpi.registry.checks import algorithm as algorithms
from fedmpi.registry.checks import compression, exchange, reduction, schedule, settings, topology


def misfits(algorithm: Algorithm, case: Case) -> Misfits:
    """Yield the settings that cannot be with the others, and what to do."""
    yield from algorithms.misfits(algorithm, case)
    if (found := exchange.check(algorithm, case)) is not None:
        yield found
    yield from settings.record(case)
    yield from settings.keep(case)
    yield from reduction.misfits(algorithm, case)
    of_axes = (compression.misfits, topology.misfits, schedule.misfits)
    for rules in (settings.attack, *of_axes, settings.privacy, settings.population, settings.tracker):
        yield from rules(case)
