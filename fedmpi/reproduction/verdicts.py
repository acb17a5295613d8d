"""What became of a paper's claims under each selection rule, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.rows import RULES
from fedmpi.judging.judgement import Judgement, in_words, judge, refusal, together
from fedmpi.reproduction.claims import BY_KIND, Stated
from fedmpi.reproduction.published import Claim, Published
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.tables import method, page_table

_SOURCES = {
    "text": "claims of the text",
    "table": "differences of cells of its tables, which the text does not name",
    "equal work": "claims of the text put to self-train of equal work",
}


@dataclass(frozen=True)
class Verdict:
    """A claim judged, in every reading of the paper that there is.

    Attributes
    ----------
    claims : tuple of Claim
        The same claim, reading by reading.
    published : str
        What the paper's tables print about it.
    against : str
        What it is measured against: a row of a table, or algorithm and rounds.
    seeds : str
        Repetitions behind ours, by reading.
    shown : dict
        Our figures by selection rule, by reading.
    alone : dict
        By selection rule, by reading: what that reading alone says.
    judged : dict
        By selection rule: of all readings together.
    unpublished : str
        Settings that it hangs on and that are not published.
    """

    claims: tuple[Claim, ...]
    published: str
    against: str
    seeds: str
    shown: Mapping[str, Mapping[str, str]]
    alone: Mapping[str, Mapping[str, Judgement]]
    judged: Mapping[str, Judgement]
    unpublished: str

    @property
    def first(self) -> Claim:
        """Its first reading."""
        return self.claims[0]


def verdicts(claims: Sequence[Claim], figures: Sequence[Published], results: Results) -> list[Verdict]:
    """Judge claims.

    A family, for Holm's correction, is what `family` says, under one rule. A claim that a
    paper's text leaves several readings of has a verdict in each, and one of all together.

    Raises
    ------
    BadInput
        A claim is about a cell that no table prints.
    """
    stated = {claim: Stated(claim, figures, results.one) for claim in claims}
    asked = {(claim, rule): each.question(rule) for claim, each in stated.items() for rule in RULES}
    answers: dict[tuple[Claim, str], Judgement] = {}
    for members in grouped(claims, family).values():
        for rule in RULES:
            marks = [(claim, rule) for claim in members]
            answers |= zip(marks, judge([asked[mark] for mark in marks]), strict=True)

    def verdict(group: Sequence[Claim]) -> Verdict:
        first, seeds = stated[group[0]], []
        for claim in group:
            estimates = [asked[claim, rule].estimate for rule in RULES]
            seeds.append(max((one.count for one in estimates if one), default=0))
        metric = first.claim.metric
        return Verdict(
            tuple(group),
            first.printed,
            first.pair()[1].row if metric else method(first.cells[1].key),
            ", ".join(map(str, seeds)),
            {rule: {each.reading: stated[each].shown(asked[each, rule]) for each in group} for rule in RULES},
            {rule: {each.reading: answers[each, rule] for each in group} for rule in RULES},
            {rule: together([answers[each, rule] for each in group]) for rule in RULES},
            first.unpublished,
        )

    return [verdict(group) for group in grouped(claims, _mark).values()]


def _mark(claim: Claim) -> tuple[str, ...]:
    """Return what a claim shares with its other readings; without readings each is its own."""
    apart = () if claim.reading else (claim.suite, claim.cases, claim.against, claim.metric)
    return claim.kind, claim.claim, *apart


def family(claim: Claim) -> tuple[str, ...]:
    """Return what claims share that are corrected together: kind, source, reading and metric.

    Leads that are only read off tables are corrected table by table, as the figures of these are.
    """
    own_table = claim.suite if claim.source == "table" and claim.metric else ""
    return claim.kind, claim.source, claim.reading, claim.metric, own_table


def verdict_tables(found: Sequence[Verdict], rules: Sequence[str]) -> list[tuple[str, str]]:
    """Return a heading and a table for each kind of claim, and for readings that stand alone."""
    tables = []
    by_kind = grouped(found, lambda each: (each.first.kind, each.first.reading))
    for (kind, reading), members in by_kind.items():
        readings = list(dict.fromkeys(claim.reading for each in members for claim in each.claims))
        apart = f", {reading}" if len(readings) == 1 and reading else ""
        tables.append((BY_KIND[kind].heading + apart, _table(members, readings, rules)))
    return tables


def _table(found: Sequence[Verdict], readings: Sequence[str], rules: Sequence[str]) -> str:
    several = len(readings) > 1
    headings = ["claim", "in", "against", "published", "seeds"]
    rows = [
        [
            f"{each.first.claim} ({each.first.metric})" if each.first.metric else each.first.claim,
            ", ".join(filter(None, (each.first.source, each.first.place))),
            *(each.against, each.published, each.seeds),
        ]
        for each in found
    ]
    for rule in rules:
        for reading in readings:
            headings += [f"{rule}: {reading}" if several else rule, "verdict"]
        headings += ["both together"] if several else []
        for row, each in zip(rows, found, strict=True):
            for reading in readings:
                row += [each.shown[rule].get(reading, "-"), str(each.alone[rule].get(reading, "-"))]
            row += [str(each.judged[rule])] if several else []
    return page_table(headings, rows)


def in_short(found: Sequence[Verdict], rules: Sequence[str]) -> str:
    """Return how many claims hold, a line per source and reading; readings that stand alone are left out."""
    first = found[0].first.reading if found else ""
    lines = []
    for source, name in _SOURCES.items():
        members = [each for each in found if (each.first.source, each.first.reading) == (source, first)]
        lines += [_line(f"Of {len(members)} {name}", members, rules)] if members else []
        for reading in readings_of(members):
            read = [each for each in members if reading in each.alone[rules[0]]]
            lines.append(_line(f"Read {reading}: of {len(read)} of these", read, rules, reading))
    return "".join(lines)


def readings_of(found: Sequence[Verdict]) -> list[str]:
    """Return the readings of claims, in order; none where their text can be read in one way."""
    readings = dict.fromkeys(claim.reading for each in found for claim in each.claims)
    return list(readings) if len(readings) > 1 else []


def answers_of(found: Sequence[Verdict], rule: str, reading: str = "") -> list[str]:
    """Return what became of claims under a rule, in one reading or, blank, in all together."""
    judged = [each.alone[rule][reading] if reading else each.judged[rule] for each in found]
    return [each.corrected for each in judged]


def _line(what: str, found: Sequence[Verdict], rules: Sequence[str], reading: str = "") -> str:
    refused = refusal("".join(each.unpublished for each in found))
    parts = (f"{rule}: {in_words(answers_of(found, rule, reading), refused)}" for rule in rules)
    return f"- {what}, {'; '.join(parts)}.\n"
