"""Cases of a suite that are the same but for their names: one of them is run."""

from __future__ import annotations

from collections.abc import Sequence

from fedmpi.case.schema import Case
from fedmpi.comm import launch
from fedmpi.config.suite import Suite
from fedmpi.errors import BadInput
from fedmpi.store.schema import canonical_json
from fedmpi.visible import complain

_MOST_NAMED = 3


def distinct(suite: Suite, cases: Sequence[Case | None]) -> list[int]:
    """Return the places of the cases that stand for themselves, the first of equal ones.

    Overrides can make cases equal, which is said in one line on the standard error; a file that does
    so by itself is wrong.

    Parameters
    ----------
    suite : Suite
    cases : sequence of Case or None
        One for each of the suite's; None for one that cannot be, which stands for itself.

    Raises
    ------
    BadInput
        Two cases of the file are the same on the same ranks, because one axis takes back what another sets.
    """
    first: dict[tuple[str, tuple[int, ...]], int] = {}
    equal: list[str] = []
    names = [each.name for each in suite.cases]
    for place, case in enumerate(cases):
        config = str(place) if case is None else canonical_json({**case.config(), "name": ""})
        other = first.setdefault((config, suite.cases[place].ranks), place)
        if other == place:
            continue
        if not suite.overridden:
            raise BadInput(
                f"{suite.path}: matrix: {names[other]} and {names[place]} have the same settings: remove "
                "one, or let no axis override what another sets"
            )
        equal.append(f"{names[place]} as {names[other]}")
    if equal and launch.rank() == 0:
        complain(_said(equal))
    return list(first.values())


def _said(equal: Sequence[str]) -> str:
    more = len(equal) - _MOST_NAMED
    named = "; ".join(equal[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"--set makes cases the same, so one of them is run for all: {named}"
