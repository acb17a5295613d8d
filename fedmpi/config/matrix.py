"""The matrix of a suite: axes, and the choices on each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedmpi.config.draws import AXIS
from fedmpi.config.modes import Ranks, table_ranks
from fedmpi.config.names import readable
from fedmpi.config.tables import Settings, closest, look_up, nested, toml_text
from fedmpi.errors import BadInput

MOST_CASES = 20_000
"""Of a suite."""

_LONGEST_EXAMPLE = 100
"""Characters of a user's own table in a message."""


@dataclass(frozen=True)
class Choice:
    """One value of an axis."""

    label: str
    change: Settings
    ranks: Ranks = ()


def axes(
    path: Path, table: Settings, priority: Sequence[Any], mode: str, candidates: int = 0
) -> dict[str, list[Choice]]:
    """Return the choices on each axis of a table, those of `priority` first; candidates are an axis of draws.

    Raises
    ------
    BadInput
        It is no matrix, or `priority` names what is no axis.
    """
    matrix = _flat(path, table)
    if AXIS in matrix and candidates:
        raise BadInput(f"{path}: matrix.{AXIS}: draws = {candidates} has an axis of this name")
    for axis, values in matrix.items():
        if not isinstance(values, list) or not values:
            raise BadInput(f"{path}: matrix.{axis} must be a list with at least one value")
    choices = {
        axis: [_choice(path, axis, value, mode) for value in values] for axis, values in matrix.items()
    }
    if candidates:
        choices[AXIS] = [Choice(f"{AXIS}{number}", {}) for number in range(1, candidates + 1)]
    for axis in priority:
        if not isinstance(axis, str):
            raise BadInput(f"{path}: priority: names axes, not {axis!r}")
        if axis not in choices:
            raise BadInput(f"{path}: priority: {axis} is no axis of the matrix{closest(axis, choices)}")
    choices = {
        axis: choices[axis] for axis in (*priority, *(each for each in choices if each not in priority))
    }
    for axis, listed in choices.items():
        most, count = Counter(each.label for each in listed).most_common(1)[0]
        if count > 1:
            raise BadInput(f"{path}: matrix.{axis}: {most} stands {count} times; labels differ on an axis")
    return choices


def _flat(path: Path, table: Settings) -> Settings:
    """Return a table whose keys are dotted: TOML reads ``partition.seed = [1, 2]`` as a table in a table."""
    found: Settings = {}
    for key, value in table.items():
        inner = _flat(path, value) if isinstance(value, dict) and value else {"": value}
        for name, each in inner.items():
            axis = f"{key}.{name}" if name else key
            if axis in found:
                raise BadInput(f"{path}: matrix.{axis} is given twice")
            found[axis] = each
    return found


def _choice(path: Path, axis: str, value: Any, mode: str) -> Choice:
    if not isinstance(value, dict):
        return Choice(label(axis, value), nested(axis, value))
    ranks = table_ranks(path, mode, value)
    change = {
        key: setting for key, setting in value.items() if key != "label" and not (ranks and key == "ranks")
    }
    if "label" not in value or not change:
        example = '{ label = "a", rounds = 5 }'
        if "name" in value:
            own = toml_text({"label": str(value["name"]), axis: value})
            example = own if len(own) <= _LONGEST_EXAMPLE else example
        raise BadInput(f"{path}: matrix.{axis}: a table needs a label and settings, such as {example}")
    return Choice(str(value["label"]), change, ranks)


def label(axis: str, value: Any) -> str:
    """Return the label of a value that has none of its own."""
    text = readable(toml_text(value)) if isinstance(value, Mapping) else str(value)
    last = axis.rpartition(".")[2]
    return (axis if last == "seed" else last) + text if isinstance(value, int | float) else text


def reduce(axes: dict[str, list[Choice]], key: str, value: Any) -> bool:
    """Keep of an axis what agrees with an override; False when the axes do not set its key."""
    if key in axes:
        kept = [choice for choice in axes[key] if choice.label in (str(value), label(key, value))]
        plain = nested(key, value)
        axes[key] = kept or [Choice(label(key, value), plain)]
        return True
    for axis, choices in axes.items():
        kept = [choice for choice in choices if look_up(choice.change, key) == value]
        if kept and all(look_up(choice.change, key) is not None for choice in choices):
            axes[axis] = kept
            return True
    return False


def refuse_too_many(path: Path, axes: Mapping[str, list[Choice]]) -> None:
    """Refuse a matrix before it is written out that would fill the memory."""
    digits = sum(math.log10(len(choices)) for choices in axes.values())
    if digits > math.log10(MOST_CASES):
        count = math.prod(map(len, axes.values())) if digits < 18 else 0
        shown = f"{count:,}" if count else f"about 10^{digits:.0f}"
        raise BadInput(
            f"{path}: matrix: {shown} cases, at most {MOST_CASES:,} are run as one suite: "
            "leave values out, or choose some with --set"
        )


def refuse_no_choice(
    path: Path, whole: Mapping[str, list[Choice]], axes: Mapping[str, list[Choice]], key: str, value: Any
) -> None:
    """Refuse a value that an axis of names does not list; an axis that is a setting takes others, too."""
    if any(look_up(choice.change, key) is not None for choice in whole.get(key, [])):
        return
    for choices, problem in (
        (whole, "the axis has no such value"),
        (axes, "an earlier --set chose otherwise"),
    ):
        labels = [choice.label for choice in choices.get(key, [])]
        if labels and str(value) not in labels and label(key, value) not in labels:
            valid = f"{closest(str(value), labels)} (valid: {', '.join(labels)})"
            raise BadInput(f"{path}: --set {key}={value}: {problem}{valid}")
