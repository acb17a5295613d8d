"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

from collections.abc import Callable
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


def _refuse_misfit(algorithm: type[Algorithm]) -> None:
    """Raise BadInput where a class is not made as `Algorithm` asks for."""
    place = f"{file_of(algorithm)}: class {algorithm.__name__}"
    options = algorithm.Options
    if not (isinstance(options, type) and issubclass(options, AlgorithmOptions)):
        raise BadInput(f"{place}: Options must be a subclass of AlgorithmOptions, not {options!r}")
    _refuse_wrong_declarations(algorithm, place)
    _refuse_misspelt(algorithm, place)
    for name in dir(algorithm):
        if getattr(getattr(algorithm, name), "__isabstractmethod__", False):
            raise BadInput(f"{place}: it needs a method {name}: define it")
    _refuse_other_arguments(algorithm.__init__, Algorithm.__init__, f"{place}: __init__")
    for part, usual in vars(Algorithm).items():
        own = getattr(algorithm, part)
        if isinstance(usual, bool) and not isinstance(own, bool):
            raise BadInput(f"{place}: {part} = {own!r}: it must be True or False")
        if callable(usual) and not callable(own):
            raise BadInput(f"{place}: {part} = {own!r}: it must be a method")
        if isfunction(usual) and isfunction(getattr_static(algorithm, part)):
            _refuse_other_arguments(own, usual, f"{place}: {part}")


_SETTING_GROUPS = frozenset({"groups", "splits", "mixes"})
"""Decisions that set the groups, of which a class has one at most."""


def _refuse_wrong_declarations(algorithm: type[Algorithm], place: str) -> None:
    """Raise BadInput for declarations that are none, or of which one undoes another."""
    for name in ("sends", "numbers"):
        declared = getattr(algorithm, name)
        if not (isinstance(declared, tuple) and all(isinstance(each, str) for each in declared)):
            raise BadInput(
                f'{place}: {name} = {declared!r}: it must be a tuple of names, such as ("control",)'
            )
    for name, known in (("decides", get_args(Decision)), ("asks", get_args(Ask))):
        declared = getattr(algorithm, name)
        if not (isinstance(declared, frozenset | set) and declared <= set(known)):
            raise BadInput(f"{place}: {name} = {declared!r}: it must be a set of {', '.join(known)}")
        if declared and not overrides(algorithm, "decide"):
            raise BadInput(f"{place}: {name} = {set(declared)}: define the hook decide")
        if declared and not algorithm.communicates:
            raise BadInput(
                f"{place}: {name} = {set(declared)}: nothing is averaged, as communicates = False says"
            )
    decides = algorithm.decides
    if len(several := sorted(decides & _SETTING_GROUPS)) > 1:
        raise BadInput(f"{place}: decides = {', '.join(several)}: each sets the groups, so keep one of them")
    if "mixes" in decides and (idle := sorted(decides & {"moves", "weights"})):
        raise BadInput(
            f"{place}: decides = mixes, {idle[0]}: mixes says how all models move, so keep it alone"
        )
    if "mixes" in decides and overrides(algorithm, "groups"):
        raise BadInput(f"{place}: groups is never called: where models are mixed, each client is a group")


def _refuse_misspelt(algorithm: type[Algorithm], place: str) -> None:
    """Raise BadInput where a method or flag is named nearly as a known one: it would have no effect."""
    hooks = set(vars(Algorithm))
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
