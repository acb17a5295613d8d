"""Every setting of a case as data, by axis and name (imports without torch)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from fedmpi.case.schema import Case
from fedmpi.config.tables import closest
from fedmpi.datasets.names import families, family_of
from fedmpi.datasets.options import DatasetOptions
from fedmpi.errors import BadInput
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import AXES
from fedmpi.registry.option_texts import documented, inner_model, type_of, values_of
from fedmpi.tasks.known import TASKS

_FILLED = ("suite", "name", "plugin")
"""Fields of a case that the suite or the registry fills."""

_OTHER_WORDS = {
    "learning_rate": "lr",
    "hidden_dim": "hidden",
    "num_layers": "layers",
    "num_clients": "clients",
    "num_rounds": "rounds",
    "seeds": "seed",
    "epochs": "local_epochs",
    "num_epochs": "local_epochs",
    "dropout_rate": "dropout",
}
"""What other programs call some keys."""

_MOST = 4
"""Places or names of a hint."""


@dataclass(frozen=True)
class Setting:
    """One key of a suite.

    Attributes
    ----------
    key : str
        Dotted, as ``--set`` takes it.
    type, values : str
        What a value is, and which are allowed; `values` may be empty.
    default : Any
        None where the setting is left out by default.
    meaning : str
    """

    key: str
    type: str
    values: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class Entry:
    """One name of an axis, its settings and, of a dataset family, its datasets."""

    name: str
    meaning: str
    paper: str
    settings: tuple[Setting, ...]
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Axis:
    """An axis of the cases, or ``case``: the settings that belong to none.

    Attributes
    ----------
    default : str
        The name that a case has without the axis.
    like : str
        The axis that has the same names and settings; empty: none has.
    """

    name: str
    meaning: str
    default: str
    entries: tuple[Entry, ...]
    like: str = ""

    @property
    def whose(self) -> str:
        """Return whose settings `common` are, for people."""
        bare = ", ".join(entry.name for entry in self.entries if not entry.settings)
        return f"Settings of all but {bare}:" if bare else "Settings of all:"

    @cached_property
    def common(self) -> tuple[Setting, ...]:
        """Keys that all names with settings have; a default that differs between them is ``...``."""
        tables = [{each.key: each for each in entry.settings} for entry in self.entries if entry.settings]
        if len(tables) < 2:
            return ()
        found = []
        for key, first in tables[0].items():
            every = [table.get(key) for table in tables]
            if all(each == first for each in every):
                found.append(first)
            elif all(each is not None and replace(each, default=first.default) == first for each in every):
                found.append(replace(first, default=...))
        return tuple(found)

    def own(self, entry: Entry) -> list[Setting]:
        """Return the settings of a name that are not told by `common`."""
        return [setting for setting in entry.settings if setting not in self.common]


def axes() -> dict[str, Axis]:
    """Return all axes by name, with what plug-ins and installed packages add."""
    tasks = dict(TASKS)
    known = tuple(Entry(name, _told(kind, tasks.values()), "", ()) for name, kind in tasks.items())
    parts: dict[str, tuple[str, tuple[Entry, ...], str]] = {
        "dataset": ("synthetic", tuple(_dataset_entries()), ""),
        "task": ("", known, ""),
        "algorithm": ("fedavg", _entries("algorithm", ALGORITHMS), ""),
    }
    for axis, (classes, default) in AXES.items():
        first = next(other for other, (known, _) in AXES.items() if known is classes)
        parts[axis] = default, _entries(axis, classes), "" if first == axis else first
    meanings = documented(Case)
    found = {name: Axis(name, meanings[name], *parts[name]) for name in Case.model_fields if name in parts}
    entries = _case_entries(found)
    return {**found, "case": Axis("case", "Settings of a case that belong to no axis.", "", entries)}


def find(place: str, name: str = "") -> list[tuple[Axis, tuple[Entry, ...]]]:
    """Return the axes that are meant, each with the names that are meant; none of these: all.

    Parameters
    ----------
    place : str
        An axis, a name of any axis, or a key, whole or its last part.
    name : str
        A name of the axis; a dataset stands for its family.

    Raises
    ------
    BadInput
        There is no such axis or name.
    """
    known = axes()
    if place in known:
        axis = known[place]
        return [(axis, (_entry(axis, name),) if name else ())]
    if name:
        raise BadInput(f'there is no axis "{place}"{closest(place, known)} (valid: {", ".join(known)})')
    named = _picked(known, lambda entry: entry if place in (entry.name, *entry.datasets) else None)
    found = named or _by_key(known, place)
    if not found:
        names = [each.name for axis in known.values() for each in axis.entries]
        raise BadInput(
            f'there is no axis, name or setting "{place}"{closest(place, [*known, *names])} '
            "(`fedmpi options` lists the axes; own parts need --plugin)"
        )
    return found


def hint(key: str) -> str:
    """Return a hint for a key that is not known where it stands; nothing where none has such a name.

    Parameters
    ----------
    key : str
        Dotted, as ``--set`` takes it.
    """
    axis, _, last = key.rpartition(".")
    known = axes()
    every = [setting for each in known.values() for entry in each.entries for setting in entry.settings]
    own = axis in known and any(setting.key == key for setting in every)
    wanted = last if own else _OTHER_WORDS.get(last, last)
    keys = Counter(setting.key for setting in every if setting.key.rpartition(".")[2] == wanted)
    dotted = f"{axis}.{wanted}" if axis else wanted
    if dotted in keys and wanted != last:
        return f"; did you mean {dotted}?"
    if axis in known:
        names = [each.name for each in known[axis].entries if any(s.key == dotted for s in each.settings)]
        return f"; {_listed(names)} {'has' if len(names) == 1 else 'have'} it" if names else ""
    usual = sorted(keys, key=lambda name: (name != wanted, name.count("."), -keys[name]))[:_MOST]
    return f"; did you mean {' or '.join(usual)}?" if usual else ""


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _by_key(known: Mapping[str, Axis], key: str) -> list[tuple[Axis, tuple[Entry, ...]]]:
    """Return the names that have a setting of this key, or of this last part, with that setting alone."""
    head, _, tail = key.partition(".")
    if head in known and _is_entry(known[head], tail):
        return [(known[head], (_entry(known[head], tail),))]

    def having(entry: Entry) -> Entry | None:
        alike = tuple(each for each in entry.settings if f".{each.key}".endswith(f".{key}"))
        return replace(entry, settings=alike) if alike else None

    return _picked(known, having)


def _picked(
    known: Mapping[str, Axis], pick: Callable[[Entry], Entry | None]
) -> list[tuple[Axis, tuple[Entry, ...]]]:
    """Return the axes of which something is picked, and that."""
    found = ((axis, tuple(filter(None, map(pick, axis.entries)))) for axis in known.values())
    return [(axis, entries) for axis, entries in found if entries]


def _entry(axis: Axis, name: str) -> Entry:
    """Return one name of an axis."""
    wanted = family_of(name).name if axis.name == "dataset" and not _is_entry(axis, name) else name
    for entry in axis.entries:
        if entry.name == wanted:
            return entry
    names = [each.name for each in axis.entries]
    raise BadInput(
        f'{axis.name}: there is no "{name}"{closest(name, names)} (valid: {", ".join(names)}; own parts need '
        "--plugin)"
    )


def _is_entry(axis: Axis, name: str) -> bool:
    return any(entry.name == name for entry in axis.entries)


def _dataset_entries() -> Iterator[Entry]:
    for family in families():
        names = (*family.names, *family.groups)
        text = family.title or _summary(type(family).__doc__)
        kind = family.Options or DatasetOptions
        yield Entry(family.name, text, "", _settings("dataset", kind, ""), names)


def _entries(axis: str, kinds: Mapping[str, type[Any]]) -> tuple[Entry, ...]:
    """Return an entry for each name of options, or of algorithms, which have a class for theirs."""
    found, known = [], dict(kinds)
    for name, kind in known.items():
        settings = _settings(axis, getattr(kind, "Options", kind), name)
        found.append(Entry(name, _told(kind, known.values()), getattr(kind, "paper", ""), settings))
    return tuple(found)


def _told(kind: type[Any], classes: Iterable[type[Any]]) -> str:
    """Return what a class is: the begin of its docstring, or of its file's where that is for it alone."""
    alone = [each.__module__ for each in classes].count(kind.__module__) == 1
    own_file = alone and kind.__module__.startswith("fedmpi.")
    return _summary(sys.modules[kind.__module__].__doc__ if own_file else kind.__doc__)


def _case_entries(axes: Mapping[str, Axis]) -> tuple[Entry, ...]:
    """Return an entry for each field of a case that is no axis."""
    settings = [each for each in _described(Case, {}, "") if each.key not in _FILLED]
    grouped: dict[str, list[Setting]] = {}
    for setting in settings:
        first = setting.key.partition(".")[0]
        if first not in axes:
            grouped.setdefault(first, []).append(setting)
    return tuple(Entry(name, found[0].meaning, "", tuple(found)) for name, found in grouped.items())


def _settings(axis: str, kind: type[BaseModel], name: str) -> tuple[Setting, ...]:
    """Return the settings of an options class, with the defaults that it has under a name."""
    try:
        usual = vars(kind.model_validate({"name": name} if name else {}))
    except ValidationError:  # a plug-in's options that must be given
        usual = {}
    found = _described(kind, usual, f"{axis}.")
    return tuple(each for each in found if each.key != f"{axis}.name")


def _described(kind: type[BaseModel], usual: Mapping[str, Any], prefix: str) -> Iterator[Setting]:
    """Yield the settings of an options class; those of a table follow it."""
    meanings = documented(kind)
    for name, info in kind.model_fields.items():
        inner = inner_model(info.annotation)
        default = usual.get(name, None if info.is_required() else info.default)
        key = f"{prefix}{name}"
        if inner is None:
            values = values_of(info.annotation, info.metadata)
            plain = list(default) if isinstance(default, tuple) else default
            yield Setting(key, type_of(info.annotation), values, plain, meanings[name])
            continue
        yield Setting(key, "table", "", None if default is None else {}, meanings[name])
        yield from _described(inner, {}, f"{key}.")


def _summary(text: str | None) -> str:
    """Return the first paragraph of a docstring as one line."""
    first = (text or "").strip().partition("\n\n")[0]
    return " ".join(first.replace("``", "").replace("`", "").split())
