"""A published table in its own shape: methods down, columns across, in each cell the paper and ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedmpi.analysis.cells import grouped
from fedmpi.reproduction.cells import Compared
from fedmpi.reproduction.judgement import CONFIRMED, NOT_REACHED, REFUTED
from fedmpi.reproduction.published import GAINS
from fedmpi.reproduction.tables import constant, markdown, refused

_MARKS = {CONFIRMED: " ✓", REFUTED: " ✗", NOT_REACHED: " ✗"}


def grids(found: Sequence[Compared], rules: Sequence[str]) -> list[tuple[str, str]]:
    """Return a grid for each metric of a table, with the metric's name; gains over self-train have none.

    Parameters
    ----------
    found : sequence of Compared
        Of one table.
    rules : sequence of str
        Selection rules that are shown, in this order.
    """
    families = grouped(found, lambda each: each.published.metric)
    return [(metric, _grid(members, rules)) for metric, members in families.items() if metric not in GAINS]


def legend(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what a cell of the grids says."""
    ours = " / ".join(rules)
    return (
        f"Each cell: paper → ours, {ours}. ✓: confirmed. ✗: {refused(found)}. Without a mark: undecided.\n"
        "*The same for every example*: a prediction without training. For accuracy it is each client's most "
        "frequent class of training,\n"
        "for F1 that of all, for errors the mean training label, for clusters one cluster with all graphs."
    )


def _grid(members: Sequence[Compared], rules: Sequence[str]) -> str:
    cells = {(each.published.row, each.published.column): each for each in members}
    columns = list(dict.fromkeys(column for _, column in cells))
    rows = [
        [name, *(_cell(cells.get((name, column)), rules) for column in columns)]
        for name in dict.fromkeys(name for name, _ in cells)
    ]
    seeds = [[len(each.cell.runs) for (_, place), each in cells.items() if place == name] for name in columns]
    floors = [
        _floor([each for (_, place), each in cells.items() if place == name and each.cell.runs])
        for name in columns
    ]
    if any(floors):
        rows.append(["*the same for every example*", *(each or "-" for each in floors)])
    rows.append(["*runs*", *(f"*{_span(counts)}*" for counts in seeds)])
    return markdown(["method", *columns], rows)


def _floor(members: Sequence[Compared]) -> str:
    """Return what a constant prediction scores in a column, mean over clients and runs; "" if unknown.

    Each client's own, where clients have scores of their own. Methods of a column have the same clients.
    """
    means = [found for each in members if not math.isnan(found := constant(each))]
    return f"{max(means):.3f}" if means else ""


def _cell(each: Compared | None, rules: Sequence[str]) -> str:
    if each is None:
        return "-"
    published = each.published
    printed = published.printed if published.value != published.value else f"{published.value:.3f}"
    if not each.cell.runs:
        return f"{printed} → -"
    return f"{printed} → {' / '.join(_ours(each, rule) for rule in rules)}"


def _ours(each: Compared, rule: str) -> str:
    one = each.ours[rule]
    return "-" if one is None else f"{one.value:.3f}{_MARKS.get(each.judged[rule].corrected, '')}"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
