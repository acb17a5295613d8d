"""What became of each paper in a few numbers: the first page, and its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fedmpi.analysis.cells import grouped
from fedmpi.judging.judgement import CONFIRMED, NOT_REACHED, NOT_RUN, REFUTED
from fedmpi.reproduction.cells import Compared
from fedmpi.reproduction.published import CLUSTERING, GAINS, HEADLINE
from fedmpi.reproduction.scores import leads_of
from fedmpi.reproduction.tables import page_table
from fedmpi.reproduction.verdicts import Verdict, answers_of, readings_of

STATES = ("confirmed", "refuted or not reached", "undecided", "not run")
"""What can have become of a figure or claim: surely so, surely not so, neither, no runs."""

_SURE, _DENIED, _OPEN, _NOT_RUN = STATES
_OF_ANSWERS = {CONFIRMED: _SURE, REFUTED: _DENIED, NOT_REACHED: _DENIED, NOT_RUN: _NOT_RUN}

AT_EQUAL_WORK = "claims of the text at equal work"
"""Claims that the lists of names have even where none is in a state, in the last round."""

_MOST_NAMED = 5
"""Figures or claims of a state that the first page names; the papers' pages have all."""

_WIDTH, _LEFT, _TOP, _STEP, _GAP = 776, 346, 34, 22, 8
"""Of the picture."""

_LOOKS = (("#009E73", "#ffffff"), ("#D55E00", "#ffffff"), ("#c9c9c9", "#222222"), ("#f4f4f4", "#222222"))
"""Colours of `STATES`: of a bar, and of the number on it."""


@dataclass(frozen=True)
class Tally:
    """What became of figures or claims of one kind under one selection rule.

    Attributes
    ----------
    what : str
        What was asked about, such as "claims of the text".
    rule : str
        The selection rule.
    answers : sequence of (str, str)
        What a figure or claim is called, and the judgement.
    of_reading : bool
        Whether it is about one of several readings of the text: the lists of names have all together.
    """

    what: str
    rule: str
    answers: Sequence[tuple[str, str]]
    of_reading: bool = False

    @property
    def counts(self) -> list[int]:
        """How many answers are in each of `STATES`; what depends on the reading is undecided."""
        return [len(self._in(state)) for state in STATES]

    @property
    def shown(self) -> bool:
        """Whether the lists of names say so where there is none."""
        return self.what == AT_EQUAL_WORK and self.rule == HEADLINE

    def _in(self, state: str) -> list[str]:
        return [name for name, answer in self.answers if _OF_ANSWERS.get(answer, _OPEN) == state]

    def named(self, state: str) -> list[str]:
        """Return the first names in a state; one of several answers is there once, with their number."""
        names = Counter(() if self.of_reading else self._in(state))
        said = [f"{name} ({count} times)" if count > 1 else name for name, count in names.items()]
        more = [f"{len(said) - _MOST_NAMED} more"] if len(said) > _MOST_NAMED else []
        return said[:_MOST_NAMED] + more


def of_figures(what: str, found: Sequence[Compared], rules: Sequence[str]) -> list[Tally]:
    """Return the tallies of figures that can be computed, in the paper's own reading, but for gains.

    With scores of clusters stand the leads of the paper's method.
    """
    figures = [each for each in found if not (each.published.reading or each.published.lacks)]
    figures = [each for each in figures if each.published.metric not in GAINS]
    names = [f"{each.published.row} on {each.published.column}" for each in figures]
    answers = {rule: [each.judged[rule].corrected for each in figures] for rule in rules}
    tallies = [Tally(what, rule, list(zip(names, answers[rule], strict=True))) for rule in rules]
    clusters = [each for each in figures if each.published.metric in CLUSTERING]
    leads = [
        (f"over {each.pair()[1].row} on {each.pair()[1].column}", answer.corrected)
        for members in grouped(clusters, lambda each: (each.published.table, each.published.metric)).values()
        for each, _, answer in leads_of(members)
    ]
    return [*tallies, *([Tally(f"leads of {found[0].published.paper}", HEADLINE, leads)] if clusters else [])]


def of_claims(judged: Sequence[Verdict], rules: Sequence[str]) -> list[Tally]:
    """Return the tallies of the claims of a paper's text, and of the orderings of its tables."""
    first = judged[0].first.reading if judged else ""
    by_source = grouped(judged, lambda each: each.first.source)
    kinds = {
        "claims of the text": [each for each in by_source.get("text", ()) if each.first.reading == first],
        AT_EQUAL_WORK: by_source.get("equal work", ()),
        "orderings of its tables": [
            each for each in by_source.get("table", ()) if each.first.kind == "above"
        ],
    }
    return [
        _claims(members, rule, reading, name)
        for name, members in kinds.items()
        for rule in rules
        if members
        for reading in ("", *readings_of(members))
    ]


def _claims(found: Sequence[Verdict], rule: str, reading: str, name: str) -> Tally:
    """Return what became of claims, in one of their readings or, blank, in all together."""
    members = [each for each in found if not reading or reading in each.alone[rule]]
    names = (each.first.claim for each in members)
    answers = list(zip(names, answers_of(members, rule, reading), strict=True))
    return Tally(f"claims read {reading}" if reading else name, rule, answers, bool(reading))


def table(papers: Sequence[tuple[str, str, Sequence[Tally]]]) -> str:
    """Return a line per paper, kind of question and selection rule.

    Parameters
    ----------
    papers : sequence of (name, link, tallies)
    """
    rows = [
        [f"[{name}]({link})", f"{len(tally.answers)} {tally.what}", tally.rule, *tally.counts]
        for name, link, tallies in papers
        for tally in tallies
    ]
    return page_table(["paper", "what", "selection", *STATES], rows)


def picture(papers: Sequence[tuple[str, str, Sequence[Tally]]]) -> dict[str, Any]:
    """Return what the template of the picture needs: a bar per line of `table`."""
    rows, y = [], _TOP
    for name, _, tallies in papers:
        for tally in tallies:
            label = f"{len(tally.answers)} {tally.what}, {tally.rule}"
            rows.append({"paper": name, "label": label, "y": y, "bars": _bars(tally)})
            name, y = "", y + _STEP
        y += _GAP
    legend = [
        {"x": _LEFT + place, "label": state, "colour": colour}
        for place, state, (colour, _) in zip((0, 95, 255, 345), STATES, _LOOKS, strict=True)
    ]
    return {"width": _WIDTH, "height": y, "left": _LEFT, "legend": legend, "rows": rows}


def _bars(tally: Tally) -> list[dict[str, Any]]:
    """Return the parts of a bar; together they are as wide as the picture allows."""
    widths = [count * (_WIDTH - _LEFT - 10) / max(len(tally.answers), 1) for count in tally.counts]
    starts = accumulate(widths, initial=float(_LEFT))
    return [
        {"x": round(x, 1), "width": round(width, 1), "colour": colour, "ink": ink, "count": count}
        for x, width, (colour, ink), count in zip(starts, widths, _LOOKS, tally.counts, strict=False)
        if count
    ]
