"""A suite file and the cases that it stands for.

A suite has a `name`, a `description`, base settings in ``[case]``, a
``[matrix]`` of axes and ``[[where]]`` rules. An axis is a setting with a list
of values, or any name with a list of tables, each a `label` and settings. The
cases are the product of the axes; `priority` names axes in the order in which
they vary, slowest first. A rule sets `set` in the cases that match `when`, by setting or by axis label; with
``skip = true`` in place of `set` these cases are left out.
``mode`` and ``ranks`` make it a scaling suite (`fedmpi.config.modes`).
``[figure]`` says what ``fedmpi plot`` draws of the cases: its `kind`, and options of that kind.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedmpi.config.documents import load_toml
from fedmpi.config.modes import Ranks, combine, read_mode, table_ranks
from fedmpi.config.tables import Settings, closest, look_up, merge, nested, parse_override, toml_text
from fedmpi.errors import BadInput

_PART = r"[A-Za-z0-9_+=-][A-Za-z0-9._+=-]*"
_NAME = re.compile(rf"{_PART}(/{_PART})*")
"""Names become folders below the output folder: no part may be `.`, `..` or empty."""

MOST_NAME_CHARACTERS = 255
"""Of one folder; file systems count bytes, and names are ASCII."""
_KEPT_CHARACTERS = 160
"""Of a name that is too long: room for what analyses append."""

MOST_CASES = 20_000
"""Of a suite."""

_UNNAMED = frozenset({"server", "watchdog_seconds", "checkpoints"})
"""Settings that decide no result: a case that is given another goes on under its name."""

_LONGEST_EXAMPLE = 100
"""Characters of a user's own table in a message."""
_KEYS = ("name", "description", "paper", "mode", "ranks", "priority", "case", "matrix", "where", "figure")


@dataclass(frozen=True)
class CaseSettings:
    """One point of the matrix: folder name, settings, unchecked, and in a mode the ranks to run it on.

    `labels` has the label of each axis.
    """

    name: str
    settings: Settings
    ranks: Ranks = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """A suite file, read and expanded.

    `mode` is one of `fedmpi.config.modes.MODES` or empty; `overridden` holds the keys given by
    ``--set``; `figure` the table of that name, or nothing.
    """

    path: Path
    name: str
    description: str
    cases: tuple[CaseSettings, ...]
    overridden: frozenset[str]
    figure: Mapping[str, Any]
    mode: str


_Rule = tuple[Settings, Settings | None]
"""When it applies, and what it sets; None where it leaves a case out."""


@dataclass(frozen=True)
class _Choice:
    """One value of an axis."""

    label: str
    change: Settings
    ranks: Ranks = ()


def read(path: Path, overrides: Sequence[str] = ()) -> Suite:
    """Read a suite and apply ``--set`` overrides.

    Overriding an axis, or what every value of an axis sets, reduces the axis to what
    agrees; overriding anything else changes every case and shows in its name, but for what decides no result.

    Raises
    ------
    BadInput
        The file is missing, not TOML, or has a wrong structure.
    """
    text = load_toml(path, "suite")
    _refuse_unknown(path, text, _KEYS)
    mode, ranks = read_mode(path, text)
    whole = _axes(path, text, mode)
    axes = dict(whole)
    base = _table(path, text, "case")
    suffixes: list[str] = []
    settings: list[Settings] = []
    for override in overrides:
        key, value = parse_override(override)
        _refuse_no_choice(path, whole, axes, key, value)
        if not _reduce(axes, key, value):
            _refuse_loss(path, override, value, settings)
            if key not in _UNNAMED:
                suffixes.append(_readable(override))
            settings.append(nested(key, value))
    rules = [_rule(path, rule) for rule in _list(path, text, "where")]
    _refuse_idle(path, rules, base, {key: [*whole[key], *axes[key]] for key in whole})
    _refuse_too_many(path, axes)
    cases = []
    for choices in itertools.product(*axes.values()):
        case = _case(base, dict(zip(axes, choices, strict=True)), rules, settings, suffixes)
        if case is None:
            continue
        on = combine(path, mode, ranks, [choice.ranks for choice in choices])
        cases.append(replace(case, ranks=on))
    if not cases:
        raise BadInput(f"{path}: the rules of [[where]] with skip = true leave no case")
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise BadInput(f"{path}: matrix: two cases have the same name; give the axis values different labels")
    overridden = frozenset(parse_override(override)[0] for override in overrides)
    name, description = text.get("name", path.stem), str(text.get("description", ""))
    refuse_no_name(path, name)
    return Suite(path, name, description, tuple(cases), overridden, _figure(path, text), mode)


def refuse_no_name(path: Path, name: Any) -> None:
    """Raise BadInput for what can be no suite's name, because it can be no folder's."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"{path}: name: letters, digits, . _ + = - and / between parts, such as gcfl/proteins")
    if max(map(len, name.split("/"))) > MOST_NAME_CHARACTERS:
        raise BadInput(f"{path}: name: a part has more than {MOST_NAME_CHARACTERS} characters")


def _refuse_unknown(path: Path, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            valid = ", ".join(known)
            raise BadInput(f"{path}: {key}: unknown key{closest(key, known)} (known: {valid})")


def _table(path: Path, text: Mapping[str, Any], key: str) -> Settings:
    table = text.get(key, {})
    if not isinstance(table, dict):
        raise BadInput(f"{path}: {key} must be a table")
    return table


def _figure(path: Path, text: Mapping[str, Any]) -> Settings:
    table = _table(path, text, "figure")
    if "figure" in text and not isinstance(table.get("kind"), str):
        raise BadInput(f'{path}: figure.kind must name what to draw, such as kind = "losses"')
    return table


def _list(path: Path, text: Mapping[str, Any], key: str) -> list[Any]:
    values = text.get(key, [])
    if not isinstance(values, list):
        how = ": write [[where]], with two brackets" if key == "where" else ""
        raise BadInput(f"{path}: {key} must be a list{how}")
    return values


def _axes(path: Path, text: Mapping[str, Any], mode: str) -> dict[str, list[_Choice]]:
    matrix = _flat(path, _table(path, text, "matrix"))
    for axis, values in matrix.items():
        if not isinstance(values, list) or not values:
            raise BadInput(f"{path}: matrix.{axis} must be a list with at least one value")
    priority = _list(path, text, "priority")
    for axis in priority:
        if not isinstance(axis, str):
            raise BadInput(f"{path}: priority: names axes, not {axis!r}")
        if axis not in matrix:
            raise BadInput(f"{path}: priority: {axis} is no axis of the matrix{closest(axis, matrix)}")
    order = [*priority, *(axis for axis in matrix if axis not in priority)]
    choices = {axis: [_choice(path, axis, value, mode) for value in matrix[axis]] for axis in order}
    for axis, listed in choices.items():
        label, count = Counter(each.label for each in listed).most_common(1)[0]
        if count > 1:
            raise BadInput(f"{path}: matrix.{axis}: {label} stands {count} times; labels differ on an axis")
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


def _choice(path: Path, axis: str, value: Any, mode: str) -> _Choice:
    if not isinstance(value, dict):
        return _Choice(_label(axis, value), nested(axis, value))
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
    return _Choice(str(value["label"]), change, ranks)


def _label(axis: str, value: Any) -> str:
    text = _readable(toml_text(value)) if isinstance(value, Mapping) else str(value)
    last = axis.rpartition(".")[2]
    return (axis if last == "seed" else last) + text if isinstance(value, int | float) else text


def _rule(path: Path, rule: Any) -> _Rule:
    if isinstance(rule, dict) and isinstance(rule.get("when"), dict):
        if set(rule) == {"when", "set"} and isinstance(rule["set"], dict):
            return rule["when"], rule["set"]
        if set(rule) == {"when", "skip"} and rule["skip"] is True:
            return rule["when"], None
    raise BadInput(f"{path}: where: each rule needs exactly the tables `when` and `set`, or `skip = true`")


def _refuse_idle(
    path: Path, rules: Sequence[_Rule], base: Settings, axes: Mapping[str, list[_Choice]]
) -> None:
    """Refuse a rule that can match no case of the file: no case has its key, or none has its value there."""
    changes = [choice.change for choices in axes.values() for choice in choices]
    places = [base, *changes, *(change for _, change in rules if change is not None)]
    for when, _ in rules:
        for key, value in when.items():
            choices = axes.get(key, [])
            values = [found for place in places if (found := look_up(place, key)) is not None]
            if not choices and not values:
                raise BadInput(f"{path}: where: {key} is neither an axis nor set in any case")
            if value not in [choice.label for choice in choices] and value not in values:
                own = [look_up(each.change, key) or each.label for each in choices]
                valid = list(dict.fromkeys(map(str, own or values)))
                hint = f"{closest(str(value), valid)} (valid: {', '.join(valid)})"
                several = "; a rule takes one value: write one for each" if isinstance(value, list) else hint
                raise BadInput(f"{path}: where: no case has {key} = {value!r}{several}")


def _refuse_too_many(path: Path, axes: Mapping[str, list[_Choice]]) -> None:
    """Refuse a matrix before it is written out that would fill the memory."""
    digits = sum(math.log10(len(choices)) for choices in axes.values())
    if digits > math.log10(MOST_CASES):
        count = math.prod(map(len, axes.values())) if digits < 18 else 0
        shown = f"{count:,}" if count else f"about 10^{digits:.0f}"
        raise BadInput(
            f"{path}: matrix: {shown} cases, at most {MOST_CASES:,} are run as one suite: "
            "leave values out, or choose some with --set"
        )


def _refuse_no_choice(
    path: Path, whole: Mapping[str, list[_Choice]], axes: Mapping[str, list[_Choice]], key: str, value: Any
) -> None:
    """Refuse a value that an axis of names does not list; an axis that is a setting takes others, too."""
    if any(look_up(choice.change, key) is not None for choice in whole.get(key, [])):
        return
    for choices, problem in (
        (whole, "the axis has no such value"),
        (axes, "an earlier --set chose otherwise"),
    ):
        labels = [choice.label for choice in choices.get(key, [])]
        if labels and str(value) not in labels and _label(key, value) not in labels:
            valid = f"{closest(str(value), labels)} (valid: {', '.join(labels)})"
            raise BadInput(f"{path}: --set {key}={value}: {problem}{valid}")


def _refuse_loss(path: Path, override: str, value: Any, settings: Sequence[Settings]) -> None:
    """Refuse an override that replaces the whole table of which an earlier one set a part."""
    if isinstance(value, Mapping) and "name" not in value:
        return
    key, _ = parse_override(override)
    if any(isinstance(found, Mapping) for each in settings for found in [_part(each, key)]):
        raise BadInput(
            f"{path}: --set {override} replaces what an earlier --set {key}... says: give it first"
        )


def _part(settings: Settings, dotted: str) -> Any:
    """Return what stands at a dotted key, None where there is nothing."""
    value: Any = settings
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _reduce(axes: dict[str, list[_Choice]], key: str, value: Any) -> bool:
    """Keep of an axis what agrees with an override; False when the axes do not set its key."""
    if key in axes:
        kept = [choice for choice in axes[key] if choice.label in (str(value), _label(key, value))]
        plain = nested(key, value)
        axes[key] = kept or [_Choice(_label(key, value), plain)]
        return True
    for axis, choices in axes.items():
        kept = [choice for choice in choices if look_up(choice.change, key) == value]
        if kept and all(look_up(choice.change, key) is not None for choice in choices):
            axes[axis] = kept
            return True
    return False


def _agrees(key: str, value: Any, choices: Mapping[str, _Choice], settings: Settings) -> bool:
    """Return whether a case has an axis at the label `value`, or a setting of that value."""
    if key in choices and choices[key].label == value:
        return True
    return bool(look_up(settings, key) == value)


def _case(
    base: Settings,
    choices: Mapping[str, _Choice],
    rules: Sequence[_Rule],
    overrides: Sequence[Settings],
    suffixes: Sequence[str],
) -> CaseSettings | None:
    """Return a case; None where a rule leaves it out."""
    settings = base
    for choice in choices.values():
        settings = merge(settings, choice.change)
    for when, change in rules:
        if all(_agrees(key, value, choices, settings) for key, value in when.items()):
            if change is None:
                return None
            settings = merge(settings, change)
    for change in overrides:
        settings = merge(settings, change)
    labels = {axis: choice.label for axis, choice in choices.items()}
    return CaseSettings(case_name([*labels.values(), *suffixes]), settings, labels=labels)


def case_name(parts: Sequence[str]) -> str:
    """Return the name of the case with these labels, in the order of the axes: a folder's name."""
    return _shortened(re.sub(r"[^A-Za-z0-9._=+-]", "_", "-".join(parts)).lstrip(".") or "case")


def _readable(override: str) -> str:
    """Return an override as a part of a name: without blanks, quotes and brackets."""
    return re.sub(r"[\s\"'{}\[\]]", "", override).replace(",", "+")


def _shortened(name: str) -> str:
    """Return a case's name; of one that no folder can have its begin, and a digest that keeps it unique."""
    if len(name) <= MOST_NAME_CHARACTERS:
        return name
    return f"{name[:_KEPT_CHARACTERS]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
