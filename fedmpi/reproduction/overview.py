"""What became of each paper in a few numbers: the first page, and its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.cells import grouped
from fedmpi.judging.judgement import CONFIRMED, NOT_REACHED, NOT_RUN, REFUTED
from fedmpi.reproduction.cells import HEADLINE, Compared
from fedmpi.reproduction.clusterings import judged_leads
from fedmpi.reproduction.verdicts import Verdict, answers_of, readings_of
from fedmpi.tables.markdown import markdown_of

STATES = ("confirmed", "refuted or not reached", "undecided", "not run")
"""What can have become of a figure or claim: surely so, surely not so, neither, no runs."""

_SURE, _DENIED, _OPEN, _NOT_RUN = STATES
_OF_ANSWERS = {CONFIRMED: _SURE, REFUTED: _DENIED, NOT_REACHED: _DENIED, NOT_RUN: _NOT_RUN}


AT_EQUAL_WORK = "claims of the text at equal work"
"""Claims that the lists of names have even where none is in a state, in the last round."""

_MOST_NAMED = 5
"""Figures or claims of a state that the first page names; the papers' pages have all."""


@dataclass(frozen=True)
class Tally:
    """What became of figures or claims of one kind under one selection rule.

    Attributes
    ----------
    what : str
        What was asked about, such as "claims of the text".
    rule : str
        The selection rule.
    answers : tuple of (str, str)
        What a figure or claim is called, and the judgement.
    of_reading : bool
        Whether it is about one of several readings of the text: the lists of names have all together.
    """

    what: str
    rule: str
    answers: tuple[tuple[str, str], ...]
    of_reading: bool = False

    @property
    def counts(self) -> list[int]:
        """How many answers are in each of `STATES`; what depends on the reading is undecided."""
        states = [_OF_ANSWERS.get(answer, _OPEN) for _, answer in self.answers]
        return [states.count(state) for state in STATES]

    @property
    def shown(self) -> bool:
        """Whether the lists of names say so where there is none."""
        return self.what == AT_EQUAL_WORK and self.rule == HEADLINE

    @property
    def confirmed(self) -> list[str]:
        """What is confirmed, by name."""
        return self._named(_SURE)

    @property
    def denied(self) -> list[str]:
        """What is refuted or not reached, by name."""
        return self._named(_DENIED)

    def _named(self, state: str) -> list[str]:
        """Return the first names in a state; one of several answers is there once, with their number."""
        if self.of_reading:
            return []
        names = Counter(name for name, answer in self.answers if _OF_ANSWERS.get(answer, _OPEN) == state)
        said = [f"{name} ({count} times)" if count > 1 else name for name, count in names.items()]
        more = [f"{len(said) - _MOST_NAMED} more"] if len(said) > _MOST_NAMED else []
        return said[:_MOST_NAMED] + more


def of_clients(found: Sequence[Compared], rules: Sequence[str]) -> list[Tally]:
    """Return the tallies of a paper with accuracies of clients: its averages."""
    averages = [each for each in _own_reading(found) if each.published.metric == "average"]
    return [_figures("average accuracies", averages, rule) for rule in rules]


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


def of_clusters(found: Sequence[Compared], rules: Sequence[str]) -> list[Tally]:
    """Return the tallies of a paper scored by clusters: its scores, and the leads of its method."""
    figures = _own_reading(found)
    families = grouped(figures, lambda each: (each.published.table, each.published.metric))
    leads = tuple(
        (f"over {other.row} on {other.column}", answer.corrected)
        for members in families.values()
        for other, answer in judged_leads(members)
    )
    return [
        *(_figures("scores of clusters", figures, rule) for rule in rules),
        Tally(f"leads of {found[0].published.paper}", HEADLINE, leads),
    ]


def of_scores(found: Sequence[Compared], rules: Sequence[str]) -> list[Tally]:
    """Return the tallies of a paper scored over all clients' test examples."""
    figures = [each for each in _own_reading(found) if not each.published.lacks]
    return [_figures("scores", figures, rule) for rule in rules]


def table(papers: Sequence[tuple[str, str, Sequence[Tally]]]) -> str:
    """Return a line per paper, kind of question and selection rule.

    Parameters
    ----------
    papers : sequence of (name, link, tallies)
    """
    rows = [
        [
            f"[{name}]({link})",
            f"{len(tally.answers)} {tally.what}",
            tally.rule,
            *map(str, tally.counts),
        ]
        for name, link, tallies in papers
        for tally in tallies
    ]
    return markdown_of(["paper", "what", "selection", *STATES], rows)


def _own_reading(found: Sequence[Compared]) -> list[Compared]:
    return [each for each in found if not each.published.reading]


def _claims(found: Sequence[Verdict], rule: str, reading: str, name: str) -> Tally:
    """Return what became of claims, in one of their readings or, blank, in all together."""
    members = [each for each in found if not reading or reading in each.alone[rule]]
    answers = answers_of(members, rule, reading)
    names = (each.first.claim for each in members)
    what = f"claims read {reading}" if reading else name
    return Tally(what, rule, tuple(zip(names, answers, strict=True)), bool(reading))


def _figures(what: str, found: Sequence[Compared], rule: str) -> Tally:
    names = (f"{each.published.row} on {each.published.column}" for each in found)
    return Tally(
        what,
        rule,
        tuple((name, each.judged[rule].corrected) for name, each in zip(names, found, strict=True)),
    )
