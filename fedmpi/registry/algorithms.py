"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from inspect import getattr_static, isfunction, signature
from typing import Any

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import (
    CONFLICTS,
    Capability,
    PersonalAggregates,
    Regroups,
    RowAggregate,
    WeightsFromReports,
    capabilities_of,
    hooks_of,
)
from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of

_NEARLY = 0.85
"""Likeness of two names, of 1, from which one is taken for the other, misspelt."""


def _refuse_misfit(algorithm: type[Algorithm]) -> None:
    """Raise BadInput where a class is not made as `Algorithm` and its capabilities ask for."""
    place = f"{file_of(algorithm)}: class {algorithm.__name__}"
    options = algorithm.Options
    if not (isinstance(options, type) and issubclass(options, AlgorithmOptions)):
        raise BadInput(f"{place}: Options must be a subclass of AlgorithmOptions, not {options!r}")
    for capability in Capability.__subclasses__():
        if not issubclass(algorithm, capability):
            _refuse_idle_hooks(algorithm, capability, place)
    for first, second, reason in CONFLICTS:
        if issubclass(algorithm, first) and issubclass(algorithm, second):
            raise BadInput(f"{place}: {first.__name__} and {second.__name__} exclude each other: {reason}")
    means_only = RowAggregate | PersonalAggregates | Regroups | WeightsFromReports
    if algorithm.sends and issubclass(algorithm, means_only):
        others = (kind for kind in capabilities_of(algorithm) if issubclass(kind, means_only))
        names = ", ".join(kind.__name__ for kind in others)
        raise BadInput(f"{place}: `sends` needs plain means of updates, which {names} replaces: remove one")
    if issubclass(algorithm, WeightsFromReports) and algorithm.weights is not Algorithm.weights:
        raise BadInput(f"{place}: weights is never called: round_weights of WeightsFromReports replaces it")
    if issubclass(algorithm, PersonalAggregates) and algorithm.groups is not Algorithm.groups:
        raise BadInput(f"{place}: groups is never called: with PersonalAggregates each client is a group")
    bases: list[type] = [Algorithm, *capabilities_of(algorithm)]
    _refuse_misspelt(algorithm, place)
    _refuse_other_arguments(algorithm.__init__, Algorithm.__init__, f"{place}: __init__")
    for base in bases:
        for part, usual in vars(base).items():
            own = getattr(algorithm, part)
            if isinstance(usual, bool) and not isinstance(own, bool):
                raise BadInput(f"{place}: {part} = {own!r}: it must be True or False")
            if callable(usual) and not callable(own):
                raise BadInput(f"{place}: {part} = {own!r}: it must be a method")
            if getattr(own, "__isabstractmethod__", False):
                raise BadInput(f"{place}: {base.__name__} needs the hook {part}: define it")
            if isfunction(usual) and isfunction(getattr_static(algorithm, part)):
                _refuse_other_arguments(own, usual, f"{place}: {part}")


def _refuse_idle_hooks(algorithm: type[Algorithm], capability: type[Capability], place: str) -> None:
    """Raise BadInput where a class defines a hook that would never be called."""
    for hook in hooks_of(capability):
        if hasattr(algorithm, hook):
            kind = capability.__name__
            raise BadInput(f"{place}: {hook} is a hook of {kind}: derive the class from {kind}, or rename it")


def _refuse_misspelt(algorithm: type[Algorithm], place: str) -> None:
    """Raise BadInput where a method is named nearly as a hook: it would never be called."""
    hooks = {name for base in (Algorithm, *Capability.__subclasses__()) for name in vars(base)}
    for name, part in vars(algorithm).items():
        if isfunction(part) and name not in hooks and not name.startswith("_"):
            near = get_close_matches(name, sorted(hooks), n=1, cutoff=_NEARLY)
            if near:
                text = f"{name} is no hook; did you mean {near[0]}? Begin names of your own methods with _"
                raise BadInput(f"{place}: {text}")


def _refuse_other_arguments(own: Callable[..., Any], usual: Callable[..., Any], place: str) -> None:
    """Raise BadInput unless a method can be called as the engine calls the usual one."""
    wanted = list(signature(usual).parameters)
    try:
        signature(own).bind(*wanted)
    except TypeError:
        taken = ", ".join(signature(own).parameters)
        raise BadInput(f"{place}({taken}): it is called as ({', '.join(wanted)})") from None


ALGORITHMS: Kind[Algorithm] = Kind(
    "algorithm", Algorithm, "fedmpi.algorithms", "fedmpi.algorithms", refuse_misfit=_refuse_misfit
)
"""All algorithms by name."""
