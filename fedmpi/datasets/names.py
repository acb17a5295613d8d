"""Dataset names: their families, groups and joins, and suggestions for wrong names."""

from __future__ import annotations

import difflib
import os
import re

from fedmpi.config.documents import short
from fedmpi.datasets.family import FAMILIES, Family
from fedmpi.errors import BadInput
from fedmpi.kinds import looked_up

JOIN = "+"
"""Joins datasets: ``PROTEINS+DD`` stands for the two in this order."""

_BEFORE_PATH = re.compile(rf"{re.escape(JOIN)}(?=\.{{0,2}}/|~)")
"""A `JOIN` that surely joins: what follows begins as a path does."""

ASK = "?"
"""Stands between the path of a file and what is said of it: ``./mine.csv?label=toxic``."""


def families() -> tuple[Family, ...]:
    """Return all families.

    Raises
    ------
    BadInput
        Two of them know the same dataset or group.
    """
    return looked_up("families", _families)


def _families() -> tuple[Family, ...]:
    found = tuple(kind() for kind in FAMILIES.known().values())
    owner: dict[str, Family] = {}
    for family in found:
        for name in (*family.names, *family.groups):
            if name in owner:
                raise BadInput(
                    f'two dataset families know "{name}": {owner[name].name} and {family.name}: rename one'
                )
            owner[name] = family
    return found


def family_of(name: str) -> Family:
    """Return the family of one dataset: the one that knows the name, else the one that takes it.

    Raises
    ------
    BadInput
        The name can be no dataset's.
    """
    every = families()
    for family in every:
        if name in family.names:
            return family
    for family in every:
        if family.takes(name):
            return family
    raise BadInput(f"'{short(name)}' is no dataset name{meant(name)}; 'fedmpi data list' shows those known")


def weighted(name: str) -> bool:
    """Return whether a dataset behind a name states what its graphs count in the training loss."""
    return any(family_of(each).weighted(each) for each in members(name))


def members(name: str) -> tuple[str, ...]:
    """Return the datasets behind a name: those of a group, those joined by `JOIN`, or the one.

    Raises
    ------
    BadInput
        The name can be no dataset's, or names one twice.
    """
    for family in families():
        if name in family.groups:
            return family.groups[name]
    parts = _joined(name)
    if len(set(parts)) < len(parts):
        raise BadInput(f"'{name}' names a dataset twice: name each once")
    for part in parts:
        family_of(part)
    return tuple(parts)


def _joined(name: str) -> list[str]:
    """Return the names that `JOIN` joins; it may also be in a path, or in what is said of a file."""
    if JOIN in name.partition(ASK)[0] and _is_there(name.partition(ASK)[0]):
        return [name]
    parts: list[str] = []
    for piece in _BEFORE_PATH.split(name):
        parts += [piece] if ASK in piece or _is_there(piece) else piece.split(JOIN)
    return parts if all(parts) or not is_path(name) else [name]


def _is_there(path: str) -> bool:
    return is_path(path) and os.path.exists(os.path.expanduser(path))


def files_behind(name: str) -> tuple[str, ...]:
    """Return the `members` of a name that are prepared in the cache: none where all are generated."""
    return tuple(member for member in members(name) if family_of(member).prepared)


def is_path(name: str) -> bool:
    """Return whether a name is the path of an own folder or file."""
    return "/" in name or os.sep in name


def has_classes(name: str) -> bool:
    """Return whether the datasets behind a name are for graph classification."""
    found = [(family_of(member), member) for member in members(name)]
    return all(family.examples == "graph" and family.task(each) == "classification" for family, each in found)


def meant(name: str) -> str:
    """Return `` (did you mean A, B?)`` for a wrong name, or nothing where none is close.

    A folder or file of this name is meant before all known names.
    """
    if name and not is_path(name) and os.path.exists(name):
        return f" (did you mean {'the folder ' * os.path.isdir(name)}./{name}?)"
    names = {known.lower(): known for family in families() for known in (*family.names, *family.groups)}
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
    return f" (did you mean {', '.join(names[key] for key in close)}?)" if close else ""
