"""Cases of a suite that are the same but for their names: one of them is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedmpi.case.schema import Case
from fedmpi.comm import launch
from fedmpi.config.suite import Suite
from fedmpi.errors import BadInput
from fedmpi.store.schema import canonical_json
from fedmpi.visible import complain

_MOST_NAMED = 3

Choose = Callable[[Sequence[int]], Sequence[int]]
"""Chooses among a suite's cases, by place."""


def distinct(suite: Suite, cases: Sequence[Case | None], choose: Choose) -> list[int]:
    """Return the chosen places of the cases that stand for themselves, the first of equal ones.

    Overrides can make cases equal, which is said in one line on the standard error; a file that does
    so by itself is wrong.

    Parameters
    ----------
    suite : Suite
    cases : sequence of Case or None
        One for each of the suite's; None for one that cannot be, which stands for itself.
    choose : callable
        Gets these places, and returns those that are meant.

    Raises
    ------
    BadInput
        Two cases of the file, one of which is chosen, are the same on the same ranks, because one axis takes
        back what another sets.
    """
    first: dict[tuple[str, tuple[int, ...]], int] = {}
    equal: list[tuple[int, int]] = []
    for place, case in enumerate(cases):
        config = str(place) if case is None else canonical_json({**case.config(), "name": ""})
        other = first.setdefault((config, suite.cases[place].ranks), place)
        if other != place:
            equal.append((other, place))
    names = [each.name for each in suite.cases]
    if suite.overridden:
        if equal and launch.rank() == 0:
            complain(_said([f"{names[place]} as {names[other]}" for other, place in equal]))
        return list(choose(list(first.values())))
    chosen = list(choose(list(range(len(cases)))))
    for other, place in equal:
        if other in chosen or place in chosen:
            raise BadInput(
                f"{suite.path}: matrix: {names[other]} and {names[place]} have the same settings: remove "
                "one, or let no axis override what another sets"
            )
    return chosen


def _said(equal: Sequence[str]) -> str:
    more = len(equal) - _MOST_NAMED
    named = "; ".join(equal[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"--set makes cases the same, so one of them is run for all: {named}"
