"""Which runs of two sides belong together, and in what they are not like for like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from fedmpi.analysis.cells import grouped, key, value_titles
from fedmpi.analysis.comparison.outcomes import Outcome, Side
from fedmpi.analysis.summary import setting
from fedmpi.store.schema import config_differences

ACCURACY, SPEED, WORK = "accuracy", "speed", "work"
"""Kinds of figures: scores; seconds, rates and memory; what is the same on any number of ranks."""

_ALL = (ACCURACY, SPEED, WORK)

_APART = ("suite", "name", "checkpoint_seconds")
"""Settings that say nothing of what is computed."""

_SYSTEM = ("device", "threads", "kernels", "group_size")
"""Settings that belong to how a system runs a case: stated, and no reason against a comparison."""

_SUBJECT = ("algorithm", "objective", "plugin")
"""Settings that people compare on purpose."""

_METHOD = ("model", "optimizer", "batch_size")
"""Settings that belong to an objective where two are compared."""


@dataclass(frozen=True)
class Reason:
    """Why a pair is not like for like.

    Attributes
    ----------
    text : str
    spoils : tuple of str
        Some of `ACCURACY`, `SPEED` and `WORK`.
    refused : bool
        No ratio is given at all; else it is given with a flag and counts for no check.
    """

    text: str
    spoils: tuple[str, ...]
    refused: bool = False


@dataclass(frozen=True)
class Pair:
    """A run of the first side and its counterpart, with what is not alike, and what differs on purpose."""

    first: Outcome
    second: Outcome
    reasons: tuple[Reason, ...]
    stated: tuple[str, ...]
    session: int = 0
    """Which one of the runs of equal settings, where a side has several."""

    @property
    def case(self) -> tuple[str, str]:
        """Dataset and algorithm, or unsupervised method; both where they differ."""
        names = dict.fromkeys((self.first.algorithm, self.second.algorithm))
        return self.first.dataset, " -> ".join(names)

    def spoilt(self, kind: str) -> bool:
        """Return whether figures of a kind may not count."""
        return any(kind in reason.spoils for reason in self.reasons)

    @property
    def same(self) -> bool:
        """Whether both are one run, or one is a copy of the other."""
        return bool(self.first.origin) and self.first.origin == self.second.origin

    @property
    def refused(self) -> bool:
        """Whether no figure may be compared at all."""
        return any(reason.refused for reason in self.reasons)


def pair(
    first: Side, second: Side, by: str | None = None, any_ranks: bool = False
) -> tuple[list[Pair], list[str]]:
    """Pair the runs of two sides: by equal settings, then by name, then by all settings but the method's.

    A method is an algorithm and an objective, in the end with the settings that belong to it.

    Two sides of one run each are a pair, whatever they are. Equal cases that are there several times are
    paired in the order of their names. With `by`, the setting in which the sides differ, all others must be
    equal, the seed too. With `any_ranks` another number of ranks is stated only.

    Returns
    -------
    pairs : list of Pair
    left : list of str
        A line for each run without a counterpart, none where a side has no runs at all.
    """
    if not first.runs or not second.runs:
        return [], []
    if by is None and len(first.runs) == len(second.runs) == 1:
        return [_pair(first.runs[0], second.runs[0], None, any_ranks)], []
    left, right, pairs = list(first.runs), list(second.runs), []
    for number, mark in enumerate(_steps(by)):
        matched = _matched(left, right, mark, repeats=by is None and number == 0)
        pairs += [replace(_pair(a, b, by, any_ranks), session=session) for session, a, b in matched]
        taken = {id(run) for _, *both in matched for run in both}
        left = [run for run in left if id(run) not in taken]
        right = [run for run in right if id(run) not in taken]
    lines = [f"{run.folder}: no counterpart in {second.label}" for run in left]
    lines += [f"{run.folder}: no counterpart in {first.label}" for run in right]
    return pairs, lines


def _steps(by: str | None) -> list[Callable[[Outcome], str]]:
    """Return the marks by which runs are paired, one after another."""

    def but(*apart: str) -> Callable[[Outcome], str]:
        return lambda run: key(run.config, *_APART, "numerics_version", *apart)

    if by is not None:
        return [but(by), but(by, *_SYSTEM, *(_METHOD if by == "objective" else ()))]
    apart = (*_SUBJECT, *_SYSTEM)
    return [but(), lambda run: run.name, but(*apart), but(*apart, *_METHOD), but(*apart, "rounds")]


def _matched(
    left: Sequence[Outcome], right: Sequence[Outcome], mark: Callable[[Outcome], str], repeats: bool
) -> list[tuple[int, Outcome, Outcome]]:
    """Return runs of equal marks; where a mark is there several times, only if `repeats`, in order.

    The number says which one of several it is.
    """
    found: list[tuple[int, Outcome, Outcome]] = []
    counterparts = grouped(right, mark)
    for shared, ours in grouped(left, mark).items():
        theirs = counterparts.get(shared, [])
        if repeats or len(ours) == len(theirs) == 1:
            found += zip(count(), ours, theirs, strict=False)
    return found


def _pair(first: Outcome, second: Outcome, by: str | None, any_ranks: bool) -> Pair:
    subject = _subject(first.config, second.config, by)
    reasons = _reasons(first, second, subject)
    stated, ranks = [], " -> ".join("+".join(map(str, run.ranks)) or "none" for run in (first, second))
    if first.ranks != second.ranks and any_ranks:
        stated.append(f"ranks: {ranks}")
    elif first.ranks != second.ranks:
        reasons.append(Reason(f"other number of ranks ({ranks})", (SPEED,)))
    same = setting(first.config, "algorithm") == setting(second.config, "algorithm")
    stated += [
        line
        for name in dict.fromkeys((*subject, *_SYSTEM))
        for line in _differences(first.config, second.config, name)
        if not line.startswith("algorithm.") and (name != "plugin" or same)  # each has its file
    ]
    systems = ((name, value, second.system.get(name, "-")) for name, value in first.system.items())
    stated += [f"{name}: {ours} -> {theirs}" for name, ours, theirs in systems if ours != theirs]
    return Pair(first, second, tuple(reasons), tuple(stated))


_WHY = {
    "numerics_version": ("other numerics version", _ALL),
    "reduction": ("other reduction", _ALL),
    "evaluation": ("other selection of rounds and clients to evaluate", _ALL),
    "seed": ("other seed", (ACCURACY,)),
    "rounds": ("other number of rounds", _ALL),
    "link": ("other modelled link", ()),
}


def _reasons(first: Outcome, second: Outcome, subject: Sequence[str]) -> list[Reason]:
    """Return in what two runs are not like for like, but for what they are compared by."""
    reasons = []
    if first.data != second.data:
        reasons.append(Reason("other content of the datasets (digests differ)", _ALL, refused=True))
    elif first.clients != second.clients or first.held != second.held:
        reasons.append(Reason("clients hold other graphs (other partition)", _ALL, refused=True))
    apart = {*_APART, *_SYSTEM, *subject, "partition", "dataset"}
    for name in sorted({*first.config, *second.config} - apart):
        if lines := _differences(first.config, second.config, name):
            text, spoils = _WHY.get(name, ("other settings", _ALL))
            reasons.append(Reason(f"{text} ({', '.join(lines)})", spoils))
    return reasons


def _subject(first: Mapping[str, Any], second: Mapping[str, Any], by: str | None) -> tuple[str, ...]:
    """Return the settings that two runs are compared by."""
    same = setting(first, "objective") == setting(second, "objective")
    asked = () if by is None else (by.partition(".")[0],)
    return (*_SUBJECT, *(() if same else _METHOD), *asked)


def _differences(first: Mapping[str, Any], second: Mapping[str, Any], name: str) -> list[str]:
    """Return what differs in a setting; of tables of other names, or where one side has none, the names."""
    left, right = first.get(name), second.get(name)
    if isinstance(left, Mapping) and isinstance(right, Mapping) and left.get("name") == right.get("name"):
        return config_differences({name: left}, {name: right})
    ours, theirs = value_titles([left, right])
    return config_differences({name: ours}, {name: theirs})
