"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of


def _refuse_misfit(algorithm: type[Algorithm]) -> None:
    """Raise BadInput where a class defines what is none of an algorithm's options, flags or hooks."""
    place = f"{file_of(algorithm)}: class {algorithm.__name__}"
    options = algorithm.Options
    if not (isinstance(options, type) and issubclass(options, AlgorithmOptions)):
        raise BadInput(f"{place}: Options must be a subclass of AlgorithmOptions, not {options!r}")
    for part, usual in vars(Algorithm).items():
        own = getattr(algorithm, part)
        if isinstance(usual, bool) and not isinstance(own, bool):
            raise BadInput(f"{place}: {part} = {own!r}: it must be True or False")
        if callable(usual) and not callable(own):
            raise BadInput(f"{place}: {part} = {own!r}: it must be a method")


ALGORITHMS: Kind[Algorithm] = Kind(
    "algorithm", Algorithm, "fedmpi.algorithms", "fedmpi.algorithms", refuse_misfit=_refuse_misfit
)
"""All algorithms by name."""
