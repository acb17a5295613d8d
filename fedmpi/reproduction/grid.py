"""A published table in its own shape: methods down, columns across, in each cell the paper and ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.rows import RULES
from fedmpi.judging.judgement import CONFIRMED, NOT_REACHED, REFUTED
from fedmpi.reproduction.cells import HEADLINE, Compared
from fedmpi.reproduction.published import CLUSTERING, GAINS
from fedmpi.reproduction.tables import constant, refused
from fedmpi.tables.markdown import markdown_of

_EQUAL = 1e-9
"""Scores that differ by less are the same share of right predictions."""

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


_CONSTANTS = {
    "average": "each client's most frequent class of training (average accuracy)",
    **dict.fromkeys(CLUSTERING, "one cluster with all graphs (clustering accuracy, macro F1)"),
    "ROC-AUC": "0.5 whatever it is (ROC-AUC)",
    "micro F1": "the most frequent class of all clients' training nodes (micro F1)",
    **dict.fromkeys(("RMSE", "MAE"), "the mean training label (errors)"),
}
"""What a constant prediction is, by metric."""


def at_constant(found: Sequence[Compared]) -> str:
    """Return how many clients score no more than a constant prediction; "" where it is not known.

    In the last round, of all clients and runs of a cell.
    """
    members = [each for each in found if each.published.metric == "average"]
    cells = {(each.published.row, each.published.column): _at_constant(each) for each in members}
    if not any(cells.values()):
        return ""
    columns, names = (list(dict.fromkeys(place[axis] for place in cells)) for axis in (1, 0))
    return markdown_of(
        ["method", *columns],
        [[name, *(cells.get((name, column)) or "-" for column in columns)] for name in names],
    )


def _at_constant(each: Compared) -> str:
    known = each.cell.values("constant_score") if each.cell.runs else np.zeros((0, 0))
    scores = each.cell.values(RULES[HEADLINE]) if each.cell.runs else known
    count = int(np.isfinite(known).sum())
    return f"{int((scores <= known + _EQUAL).sum())} of {count}" if count else ""


def legend(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what a cell of the grids says, and what a constant prediction is."""
    ours = " / ".join(rules)
    text = f"Each cell: paper → ours, {ours}. ✓: confirmed. ✗: {refused(found)}. Without a mark: undecided."
    metrics = dict.fromkeys(each.published.metric for each in found if not math.isnan(constant(each)))
    said = list(dict.fromkeys(_CONSTANTS[metric] for metric in metrics if metric in _CONSTANTS))
    return f"{text}\n*Constant prediction*, which takes no training: {'; '.join(said)}." if said else text


def _grid(members: Sequence[Compared], rules: Sequence[str]) -> str:
    cells = {(each.published.row, each.published.column): each for each in members}
    columns = list(dict.fromkeys(column for _, column in cells))
    rows = [
        [name, *(_cell(cells.get((name, column)), rules) for column in columns)]
        for name in dict.fromkeys(name for name, _ in cells)
    ]
    seeds = [[len(each.cell.runs) for (_, place), each in cells.items() if place == name] for name in columns]
    constants = [
        _constant([each for (_, place), each in cells.items() if place == name and each.cell.runs])
        for name in columns
    ]
    if any(constants):
        rows.append(["*constant prediction*", *(each or "-" for each in constants)])
    rows.append(["*runs*", *(f"*{_span(counts)}*" for counts in seeds)])
    return markdown_of(["method", *columns], rows)


def _constant(members: Sequence[Compared]) -> str:
    """Return what a constant prediction scores in a column, "" if unknown; a span where methods differ.

    It is taken of those with the most runs. Centralised training has one client, so its own is another one.
    """
    federated = [each for each in members if "centralised" not in each.published.row]
    most = max((len(each.cell.runs) for each in federated), default=0)
    found = [constant(each) for each in federated if len(each.cell.runs) == most]
    shown = sorted({f"{each:.3f}" for each in found if not math.isnan(each)})
    return " to ".join(dict.fromkeys((shown[0], shown[-1]))) if shown else ""


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
    return "-" if one is None else f"{one.mean:.3f}{_MARKS.get(each.judged[rule].corrected, '')}"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
