"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from inspect import getattr_static, isfunction, signature
from typing import Any, get_args

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.declared import overrides
from fedmpi.algorithms.program import Ask, Decision
from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of

_NEARLY = 0.85
"""Likeness of two names, of 1, from which one is taken for the other, misspelt."""


_SETTING_GROUPS = frozenset({"groups", "splits", "mixes"})
"""Decisions that set the groups, of which a class has one at most."""


def _refuse_misfit(algorithm: type[Algorithm]) -> None:
    """Raise BadInput where a class is not made as `Algorithm` asks for."""
    for text in _misfits(algorithm):
        raise BadInput(f"{file_of(algorithm)}: class {algorithm.__name__}: {text}")


def _misfits(algorithm: type[Algorithm]) -> Iterator[str]:
    """Yield what is wrong with a class; the first is told."""
    options = algorithm.Options
    if not (isinstance(options, type) and issubclass(options, AlgorithmOptions)):
        yield f"Options must be a subclass of AlgorithmOptions, not {options!r}"
    yield from _wrong_declarations(algorithm)
    yield from _misspelt(algorithm)
    for name in dir(algorithm):
        if getattr(getattr(algorithm, name), "__isabstractmethod__", False):
            yield f"it needs a method {name}: define it"
    yield from _other_arguments("__init__", algorithm.__init__, Algorithm.__init__)
    for part, usual in vars(Algorithm).items():
        own = getattr(algorithm, part)
        if isinstance(usual, bool) and not isinstance(own, bool):
            yield f"{part} = {own!r}: it must be True or False"
        if callable(usual) and not callable(own):
            yield f"{part} = {own!r}: it must be a method"
        if isfunction(usual) and isfunction(getattr_static(algorithm, part)):
            yield from _other_arguments(part, own, usual)


def _wrong_declarations(algorithm: type[Algorithm]) -> Iterator[str]:
    """Yield declarations that are none, or of which one undoes another."""
    for name in ("sends", "numbers"):
        declared = getattr(algorithm, name)
        if not (isinstance(declared, tuple) and all(isinstance(each, str) for each in declared)):
            yield f'{name} = {declared!r}: it must be a tuple of names, such as ("control",)'
    for name, known in (("decides", get_args(Decision)), ("asks", get_args(Ask))):
        declared = getattr(algorithm, name)
        if not (isinstance(declared, frozenset | set) and declared <= set(known)):
            yield f"{name} = {declared!r}: it must be a set of {', '.join(known)}"
        if declared and not overrides(algorithm, "decide"):
            yield f"{name} = {set(declared)}: define the hook decide"
        if declared and not algorithm.communicates:
            yield f"{name} = {set(declared)}: nothing is averaged, as communicates = False says"
    decides = algorithm.decides
    if len(several := sorted(decides & _SETTING_GROUPS)) > 1:
        yield f"decides = {', '.join(several)}: each sets the groups, so keep one of them"
    if "mixes" in decides and (idle := sorted(decides & {"moves", "weights"})):
        yield f"decides = mixes, {idle[0]}: mixes says how all models move, so keep it alone"
    if "mixes" in decides and overrides(algorithm, "groups"):
        yield "groups is never called: where models are mixed, each client is a group"


def _misspelt(algorithm: type[Algorithm]) -> Iterator[str]:
    """Yield methods and flags that are named nearly as known ones: they would have no effect."""
    hooks = set(vars(Algorithm))
    for name, part in vars(algorithm).items():
        if name in hooks or name.startswith("_"):
            continue
        for near in get_close_matches(name, sorted(hooks), n=1, cutoff=_NEARLY):
            kind, own = ("hook", "methods") if isfunction(part) else ("flag", "attributes")
            yield f"{name} is no {kind}; did you mean {near}? Begin names of your own {own} with _"


def _other_arguments(name: str, own: Callable[..., Any], usual: Callable[..., Any]) -> Iterator[str]:
    """Yield that a method cannot be called as the engine calls the usual one."""
    wanted = list(signature(usual).parameters)
    try:
        signature(own).bind(*wanted)
    except TypeError:
        taken = ", ".join(signature(own).parameters)
        yield f"{name}({taken}): it is called as ({', '.join(wanted)})"


ALGORITHMS: Kind[Algorithm] = Kind(
    "algorithm", Algorithm, "fedmpi.algorithms", "fedmpi.algorithms", refuse_misfit=_refuse_misfit
)
"""All algorithms by name."""
