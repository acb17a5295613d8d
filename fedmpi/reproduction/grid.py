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
from fedmpi.reproduction.tables import constant, pivot, refused

_EQUAL = 1e-9
"""Scores that differ by less are the same share of right predictions."""

_MARKS = {CONFIRMED: " ✓", REFUTED: " ✗", NOT_REACHED: " ✗"}

_CONSTANTS = {
    "average": "each client's most frequent class of training (average accuracy)",
    **dict.fromkeys(CLUSTERING, "one cluster with all graphs (clustering accuracy, macro F1)"),
    "ROC-AUC": "0.5 whatever it is (ROC-AUC)",
    "micro F1": "the most frequent class of all clients' training nodes (micro F1)",
    **dict.fromkeys(("RMSE", "MAE"), "the mean training label (errors)"),
}
"""What a constant prediction is, by metric."""


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


def at_constant(found: Sequence[Compared]) -> str:
    """Return how many clients score no more than a constant prediction; "" where it is not known.

    In the last round, of all clients and runs of a cell.
    """
    members = [each for each in found if each.published.metric == "average"]
    cells = {(each.published.row, each.published.column): _at_constant(each) for each in members}
    return pivot("method", cells) if any(cells.values()) else ""


def _at_constant(each: Compared) -> str | None:
    known, scores = (each.cell.values(column) for column in ("constant_score", RULES[HEADLINE]))
    count = int(np.isfinite(known).sum())
    return f"{int((scores <= known + _EQUAL).sum())} of {count}" if count else None


def legend(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what a cell of the grids says, and what a constant prediction is."""
    ours = " / ".join(rules)
    text = f"Each cell: paper → ours, {ours}. ✓: confirmed. ✗: {refused(found)}. Without a mark: undecided."
    metrics = dict.fromkeys(each.published.metric for each in found if not math.isnan(constant(each)))
    said = list(dict.fromkeys(_CONSTANTS[metric] for metric in metrics if metric in _CONSTANTS))
    return f"{text}\n*Constant prediction*, which takes no training: {'; '.join(said)}." if said else text


def _grid(members: Sequence[Compared], rules: Sequence[str]) -> str:
    cells = {(each.published.row, each.published.column): each for each in members}
    columns = grouped(cells.values(), lambda each: each.published.column).values()
    constants = [_constant([each for each in column if each.cell.runs]) for column in columns]
    runs = [
        _span([str(count) for count in sorted(len(each.cell.runs) for each in column)]) for column in columns
    ]
    below = [["*constant prediction*", *constants]] if any(constants) else []
    below.append(["*runs*", *(f"*{each}*" for each in runs)])
    return pivot("method", {place: _cell(each, rules) for place, each in cells.items()}, below)


def _constant(members: Sequence[Compared]) -> str | None:
    """Return what a constant prediction scores in a column, if known; a span where methods differ.

    It is taken of those with the most runs. Centralised training has one client, so its own is another one.
    """
    federated = [each for each in members if "centralised" not in each.published.row]
    most = max((len(each.cell.runs) for each in federated), default=0)
    found = [constant(each) for each in federated if len(each.cell.runs) == most]
    return _span(sorted(f"{each:.3f}" for each in found if not math.isnan(each)))


def _cell(each: Compared, rules: Sequence[str]) -> str:
    published = each.published
    printed = published.printed if math.isnan(published.value) else f"{published.value:.3f}"
    ours = " / ".join(_ours(each, rule) for rule in rules) if each.cell.runs else "-"
    return f"{printed} → {ours}"


def _ours(each: Compared, rule: str) -> str:
    one = each.ours[rule]
    return "-" if one is None else f"{one.mean:.3f}{_MARKS.get(each.judged[rule].corrected, '')}"


def _span(texts: Sequence[str]) -> str | None:
    """Return the first and the last of sorted texts, or what both are."""
    return " to ".join(dict.fromkeys((texts[0], texts[-1]))) if texts else None
