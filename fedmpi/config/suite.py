"""A suite file and the cases that it stands for.

A suite has a `name`, a `description`, base settings in ``[case]``, a
``[matrix]`` of axes and ``[[where]]`` rules. An axis is a setting with a list
of values, or any name with a list of tables, each a `label` and settings. The
cases are the product of the axes; `priority` names axes in the order in which
they vary, slowest first. A rule sets `set` in the cases that match `when`, by setting or by axis label; with
``skip = true`` in place of `set` these cases are left out. ``draws = 24`` makes an axis `draw` of so many
candidates, and a rule's `draw` says how their settings are drawn (`fedmpi.config.draws`).
``mode`` and ``ranks`` make it a scaling suite (`fedmpi.config.modes`).
``[figure]`` says what ``fedmpi plot`` draws of the cases: its `kind`, and options of that kind.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fedmpi.config import draws, matrix
from fedmpi.config.documents import load_toml
from fedmpi.config.matrix import Choice
from fedmpi.config.modes import Ranks, combine, read_mode
from fedmpi.config.names import case_name, readable, refuse_no_name
from fedmpi.config.tables import Settings, closest, look_up, merge, nested, parse_override, value_at
from fedmpi.errors import BadInput

_UNNAMED = frozenset({"server", "watchdog_seconds", "checkpoints", "track"})
"""Settings that decide no result: a case that is given another goes on under its name."""

_KEYS = (
    *("name", "description", "paper", "mode", "ranks", "priority", "draws", "case", "matrix", "where"),
    "figure",
)


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


@dataclass(frozen=True)
class _Rule:
    """When it applies, and what it sets, None where it leaves a case out; or what a candidate draws."""

    when: Settings
    change: Settings | None
    draw: Callable[[str], Settings] | None = None

    def applied(self, settings: Settings, choices: Mapping[str, Choice]) -> Settings | None:
        """Return the settings of a case that it matches, changed; None where it leaves the case out."""
        if self.change is None:
            return None
        return merge(settings, self.draw(choices[draws.AXIS].label) if self.draw else self.change)


class SuiteFile:
    """A suite file, parsed once, of which cases are read under any overrides."""

    def __init__(self, path: Path) -> None:
        """Parse a file.

        Raises
        ------
        BadInput
            The file is missing, not TOML, or has a wrong structure.
        """
        self._path = path
        self._text = text = load_toml(path, "suite")
        _refuse_unknown(path, text, _KEYS)
        self._mode, self._ranks = read_mode(path, text)
        self._axes = matrix.axes(
            path, _table(path, text, "matrix"), _list(path, text, "priority"), self._mode, _draws(path, text)
        )
        self._base = _table(path, text, "case")
        self._sound: dict[str, list[Choice]] | None = None

    def suite(self, overrides: Sequence[str] = ()) -> Suite:
        """Apply ``--set`` overrides and expand the matrix; see `read`."""
        path, text, axes = self._path, self._text, dict(self._axes)
        settings, suffixes = self._applied(overrides, axes)
        rules = _rules(path, _list(path, text, "where"))
        if any(rule.draw for rule in rules) != (draws.AXIS in self._axes):
            raise BadInput(
                f"{path}: draws = N, of candidates, and a rule of [[where]] with `draw` go together"
            )
        self._refuse_unsound(rules, axes)
        cases = []
        for choices in itertools.product(*axes.values()):
            case = _case(self._base, dict(zip(axes, choices, strict=True)), rules, settings, suffixes)
            if case is not None:
                on = combine(path, self._mode, self._ranks, [choice.ranks for choice in choices])
                cases.append(replace(case, ranks=on))
        if not cases:
            raise BadInput(f"{path}: the rules of [[where]] with skip = true leave no case")
        if len({case.name for case in cases}) < len(cases):
            raise BadInput(
                f"{path}: matrix: two cases have the same name; give the axis values different labels"
            )
        overridden = frozenset(parse_override(override)[0] for override in overrides)
        name, description = text.get("name", path.stem), str(text.get("description", ""))
        refuse_no_name(path, name)
        return Suite(path, name, description, tuple(cases), overridden, _figure(path, text), self._mode)

    def _applied(
        self, overrides: Sequence[str], axes: dict[str, list[Choice]]
    ) -> tuple[list[Settings], list[str]]:
        """Reduce axes as overrides say; return what else they set, and what that adds to names of cases."""
        settings: list[Settings] = []
        suffixes: list[str] = []
        for override in overrides:
            key, value = parse_override(override)
            matrix.refuse_no_choice(self._path, self._axes, axes, key, value)
            if not matrix.reduce(axes, key, value):
                _refuse_loss(self._path, override, value, settings)
                if key not in _UNNAMED:
                    suffixes.append(readable(override))
                settings.append(nested(key, value))
        return settings, suffixes

    def _refuse_unsound(self, rules: Sequence[_Rule], axes: Mapping[str, list[Choice]]) -> None:
        """Refuse rules without use, once for the same axes, and a matrix that is too large."""
        whole, path = self._axes, self._path
        written = {
            key: [*whole[key], *(each for each in axes[key] if each not in whole[key])] for key in whole
        }
        known = written == self._sound
        if not known:
            _refuse_idle(path, rules, self._base, written)
        matrix.refuse_too_many(path, axes)
        if not known and math.prod(map(len, written.values())) <= matrix.MOST_CASES:
            _refuse_unmatched(path, rules, self._base, written)
        self._sound = written


def read(path: Path, overrides: Sequence[str] = ()) -> Suite:
    """Read a suite and apply ``--set`` overrides.

    Overriding an axis, or what every value of an axis sets, reduces the axis to what
    agrees; overriding anything else changes every case and shows in its name, but for what decides no result.

    Raises
    ------
    BadInput
        The file is missing, not TOML, or has a wrong structure.
    """
    return SuiteFile(path).suite(overrides)


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


def _draws(path: Path, text: Mapping[str, Any]) -> int:
    """Return the number of candidates; 0 where nothing is drawn."""
    number = text.get("draws", 0)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= matrix.MOST_CASES:
        raise BadInput(f"{path}: draws must be a number of candidates, at most {matrix.MOST_CASES:,}")
    return number


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


def _rules(path: Path, listed: Sequence[Any]) -> list[_Rule]:
    """Return the rules of ``[[where]]``; what all cases draw comes first in the candidates' sequence."""
    tables = [rule for rule in listed if isinstance(rule, dict) and isinstance(rule.get("draw"), dict)]
    of_all = [key for rule in tables if rule.get("when") == {} for key in draws.keys(path, rule["draw"])]
    return [_rule(path, rule, of_all) for rule in listed]


def _rule(path: Path, rule: Any, of_all: Sequence[str]) -> _Rule:
    if isinstance(rule, dict) and isinstance(rule.get("when"), dict):
        if set(rule) == {"when", "set"} and isinstance(rule["set"], dict):
            return _Rule(rule["when"], rule["set"])
        stream = rule.get("stream", "")
        if (
            set(rule) - {"stream"} == {"when", "draw"}
            and isinstance(rule["draw"], dict)
            and isinstance(stream, str)
        ):
            draw = partial(draws.drawn, path, rule["draw"], stream, of_all)
            draw(f"{draws.AXIS}1")  # whether it has distributions
            return _Rule(rule["when"], {}, draw)
        if set(rule) == {"when", "skip"} and rule["skip"] is True:
            return _Rule(rule["when"], None)
    raise BadInput(
        f"{path}: where: each rule needs exactly the tables `when` and `set`, or `draw`, or `skip = true`"
    )


def _refuse_idle(
    path: Path, rules: Sequence[_Rule], base: Settings, axes: Mapping[str, list[Choice]]
) -> None:
    """Refuse a rule that can match no case of the file: no case has its key, or none has its value there."""
    changes = [choice.change for choices in axes.values() for choice in choices]
    places = [base, *changes, *(rule.change for rule in rules if rule.change is not None)]
    for rule in rules:
        for key, value in rule.when.items():
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


def _refuse_unmatched(
    path: Path, rules: Sequence[_Rule], base: Settings, axes: Mapping[str, list[Choice]]
) -> None:
    """Refuse a rule whose values no case of the file has together, or none that an earlier rule has left."""
    left = dict(enumerate(rules))
    for chosen in itertools.product(*axes.values()):
        if not left:
            return
        choices = dict(zip(axes, chosen, strict=True))
        settings = _chosen(base, choices)
        for number, rule in enumerate(rules):
            if _matches(rule.when, choices, settings):
                left.pop(number, None)
                changed = rule.applied(settings, choices)
                if changed is None:
                    break
                settings = changed
    for rule in left.values():
        values = " and ".join(f"{key} = {value!r}" for key, value in rule.when.items())
        raise BadInput(f"{path}: where: no case has {values}{' together' * (len(rule.when) > 1)}")


def _refuse_loss(path: Path, override: str, value: Any, settings: Sequence[Settings]) -> None:
    """Refuse an override that replaces the whole table of which an earlier one set a part."""
    if isinstance(value, Mapping) and "name" not in value:
        return
    key, _ = parse_override(override)
    if any(isinstance(found, Mapping) for each in settings for found in [value_at(each, key)]):
        raise BadInput(
            f"{path}: --set {override} replaces what an earlier --set {key}... says: give it first"
        )


def _matches(when: Settings, choices: Mapping[str, Choice], settings: Settings) -> bool:
    """Return whether a case has all these, each an axis at a label or a setting of a value."""
    return all(
        (key in choices and choices[key].label == value) or look_up(settings, key) == value
        for key, value in when.items()
    )


def _chosen(base: Settings, choices: Mapping[str, Choice]) -> Settings:
    """Return the settings of a case before rules and overrides."""
    settings = base
    for choice in choices.values():
        settings = merge(settings, choice.change)
    return settings


def _case(
    base: Settings,
    choices: Mapping[str, Choice],
    rules: Sequence[_Rule],
    overrides: Sequence[Settings],
    suffixes: Sequence[str],
) -> CaseSettings | None:
    """Return a case; None where a rule leaves it out."""
    settings = _chosen(base, choices)
    for rule in rules:
        if _matches(rule.when, choices, settings):
            changed = rule.applied(settings, choices)
            if changed is None:
                return None
            settings = changed
    for change in overrides:
        settings = merge(settings, change)
    labels = {axis: choice.label for axis, choice in choices.items()}
    return CaseSettings(case_name([*labels.values(), *suffixes]), settings, labels=labels)
