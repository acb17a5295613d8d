"""The published tables beside ours, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedmpi.analysis.names import algorithm_name
from fedmpi.analysis.reproduction.cells import AS_PUBLISHED, HEADLINE, Compared
from fedmpi.analysis.reproduction.judgement import CONFIRMED, REFUTED
from fedmpi.analysis.reproduction.results import Key
from fedmpi.analysis.reproduction.statistics import Estimate
from fedmpi.analysis.rows import RULES


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(estimate: Estimate | None) -> str:
    """Return a figure without its interval; "-" where there is none."""
    return "-" if estimate is None else f"{estimate.value:.4f}"


def signed(estimate: Estimate | None) -> str:
    """Return a difference with its interval; "-" where there is none."""
    return "-" if estimate is None else estimate.signed


def method(key: Key) -> str:
    """Return what a method is called: its algorithm and its rounds."""
    return f"{algorithm_name(key.algorithm)}, {key.rounds} rounds"


def in_short(found: Sequence[Compared]) -> str:
    """Return what became of the averages, and what choosing by test data is worth, a line each."""
    averages = [each for each in found if each.published.metric == "average"]
    lines = []
    for rule, question in ((AS_PUBLISHED, "as the paper computes them"), (HEADLINE, "in the last round")):
        confirmed, refuted, undecided, nothing = _counts([each.judged[rule].corrected for each in averages])
        lines.append(
            f"- Of {len(averages)} published average accuracies, {question}: {refuted} refuted, "
            f"{confirmed} confirmed, {undecided} undecided, {nothing} open."
        )
    worth: dict[str, list[str]] = {}
    for each in averages:
        last, largest = each.ours[HEADLINE], each.ours[AS_PUBLISHED]
        if last is not None and largest is not None and largest.value > last.value:
            points = f"{100 * (largest.value - last.value):.1f} on {each.published.column}"
            worth.setdefault(each.published.row, []).append(points)
    lines += [
        f"- Choosing by test data, as published, adds to {name} in points: {', '.join(points)}."
        for name, points in worth.items()
    ]
    return "\n".join(lines) + "\n"


def accuracy_table(found: Sequence[Compared]) -> str:
    """Return the average accuracies of a published table."""
    headings = ["column", "method", "paper", "seeds", *RULES]
    headings += ["as published - paper", "reproduced?", "last round - paper", "holds in the last round?"]
    return markdown(headings, [_accuracies(each) for each in found if each.published.metric == "average"])


def gains_table(found: Sequence[Compared]) -> str:
    """Return the smallest gains or ratios of a published table."""
    headings = ["column", "method", "metric", "paper", "seeds", *RULES]
    headings += ["as published - paper", "reproduced?", "last round - paper", "holds in the last round?"]
    return markdown(headings, [_gains(each) for each in found if each.published.metric != "average"])


def counts_table(found: Sequence[Compared]) -> str:
    """Return how many figures are confirmed, refuted, undecided and open, with and without the correction."""
    rows = []
    families = dict.fromkeys((each.published.table, each.published.metric) for each in found)
    for table, metric in families:
        members = [each for each in found if (each.published.table, each.published.metric) == (table, metric)]
        for rule in RULES:
            judged = [each.judged[rule] for each in members]
            corrected, alone = ([each.corrected for each in judged], [each.plain for each in judged])
            rows.append([table, metric, rule, *_counts(corrected), " / ".join(_counts(alone)[:2])])
    headings = ["table", "metric", "rule", CONFIRMED, REFUTED, "undecided", "open"]
    return markdown([*headings, "without correction: confirmed / refuted"], rows)


def _counts(answers: Sequence[str]) -> list[str]:
    known = [answers.count(word) for word in (CONFIRMED, REFUTED)]
    nothing = answers.count("open")
    return [str(count) for count in (*known, len(answers) - sum(known) - nothing, nothing)]


def _accuracies(each: Compared) -> list[str]:
    published = each.published
    printed = published.printed if published.spread is None else f"{published.printed} (±{published.spread})"
    values = [number(each.ours[rule]) for rule in RULES]
    return [published.column, published.row, printed, str(len(each.cell.runs)), *values, *_judged(each)]


def _gains(each: Compared) -> list[str]:
    published = each.published
    values = [_gain(each, rule) for rule in RULES]
    place = [published.column, published.row, published.metric, published.printed]
    return [*place, str(len(each.cell.runs)), *values, *_judged(each)]


def _gain(each: Compared, rule: str) -> str:
    ours = each.ours[rule]
    if ours is None:
        return "-"
    if each.published.clients is not None:
        return f"{round(ours.value * each.published.clients)}/{each.published.clients}"
    return f"{ours.value + 0.0:+.4f} ({each.client[rule]})"


def _judged(each: Compared) -> list[str]:
    found = []
    for rule in (AS_PUBLISHED, HEADLINE):
        found += [signed(each.differences[rule]), str(each.judged[rule])]
    return found
