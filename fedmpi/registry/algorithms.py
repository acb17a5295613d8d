"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from inspect import getattr_static, isfunction, signature
from typing import Any

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import (
    Capability,
    RowAggregate,
    Splits,
    capabilities_of,
    hooks_of,
    overrides,
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
    _refuse_wrong_declarations(algorithm, place)
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


_DECISIONS = frozenset({"groups", "weights", "means"})

_TOGETHER = ({"rows", "splits"}, {"rows", "groups"}, {"splits", "sends"})
"""Of what a class makes of the updates, what goes together; each of the others goes alone."""


def _refuse_wrong_declarations(algorithm: type[Algorithm], place: str) -> None:
    """Raise BadInput for declarations that are none, or of which one undoes another."""
    for name in ("sends", "numbers"):
        declared = getattr(algorithm, name)
        if not (isinstance(declared, tuple) and all(isinstance(each, str) for each in declared)):
            raise BadInput(
                f'{place}: {name} = {declared!r}: it must be a tuple of names, such as ("control",)'
            )
    decides = algorithm.decides
    if not (isinstance(decides, frozenset | set) and decides <= _DECISIONS):
        raise BadInput(f"{place}: decides = {decides!r}: it must be a set of {', '.join(sorted(_DECISIONS))}")
    if decides and not overrides(algorithm, "decide"):
        raise BadInput(f"{place}: decides = {set(decides)}: define the hook decide")
    made = set(decides) | ({"sends"} if algorithm.sends else set())
    made |= {"rows"} if issubclass(algorithm, RowAggregate) else set()
    made |= {"splits"} if issubclass(algorithm, Splits) else set()
    if len(made) > 1 and not any(made <= each for each in _TOGETHER):
        names = ", ".join(sorted(made))
        raise BadInput(f"{place}: {names}: each says how updates are averaged, and these do not go together")
    if "weights" in decides and overrides(algorithm, "weights"):
        raise BadInput(f"{place}: weights is never called: decide gives the weights")
    if "means" in decides and overrides(algorithm, "groups"):
        raise BadInput(f"{place}: groups is never called: with means of their own each client is a group")


def _refuse_idle_hooks(algorithm: type[Algorithm], capability: type[Capability], place: str) -> None:
    """Raise BadInput where a class defines a hook that would never be called."""
    for hook in hooks_of(capability):
        if hasattr(algorithm, hook):
            kind = capability.__name__
            raise BadInput(f"{place}: {hook} is a hook of {kind}: derive the class from {kind}, or rename it")


def _refuse_misspelt(algorithm: type[Algorithm], place: str) -> None:
    """Raise BadInput where a method or flag is named nearly as a known one: it would have no effect."""
    hooks = {name for base in (Algorithm, *Capability.__subclasses__()) for name in vars(base)}
    for name, part in vars(algorithm).items():
        if name not in hooks and not name.startswith("_"):
            near = get_close_matches(name, sorted(hooks), n=1, cutoff=_NEARLY)
            if near:
                kind, own = ("hook", "methods") if isfunction(part) else ("flag", "attributes")
                text = f"{name} is no {kind}; did you mean {near[0]}? Begin names of your own {own} with _"
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
