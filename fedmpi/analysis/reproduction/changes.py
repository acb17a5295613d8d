"""Scores of a published table with one setting changed at a time, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fedmpi.analysis.reproduction.cells import AS_PUBLISHED, Compared
from fedmpi.analysis.reproduction.results import Results, Row
from fedmpi.analysis.reproduction.tables import markdown
from fedmpi.analysis.rows import RULES

_BY_VALIDATION = "best by validation"


def changes_table(results: Results, suite: str, found: Sequence[Compared]) -> str:
    """Return what each change of a suite scores, beside the figures that it changes.

    Parameters
    ----------
    suite : str
        Its cases are called as those of the published table, behind the dataset, and then the change:
        ``seed1-gcn-fedavg-rounds-150`` beside ``FreeSolv-seed1-gcn-fedavg``.
    found : sequence of Compared
        The published figures; those of other datasets are left out.
    """
    plan = results.plan(suite)
    names = {key.dataset for key in plan}
    members = [each for each in found if each.cell.key.dataset in names and each.cell.runs]
    methods = {ending: each.published.row for each in members for ending in _endings(each, results)}
    changed: dict[str, dict[str, list[Row]]] = {}
    for key, repetitions in plan.items():
        runs = results.cell(key).runs
        for repetition in repetitions.keys() & runs.keys():
            name = repetitions[repetition]
            ending = next(one for one in methods if name.startswith(f"{one}-"))
            by_method = changed.setdefault(name.removeprefix(f"{ending}-"), {})
            by_method.setdefault(methods[ending], []).extend(runs[repetition].values())
    if not changed:
        return ""
    columns = [each.published.row for each in members]
    rows = [["published", *(each.published.printed for each in members)]]
    rows.append(["the table's settings", *(_entry(list(_rows(each))) for each in members)])
    rows += [[name, *(_entry(changed[name].get(column, [])) for column in columns)] for name in changed]
    return markdown(["change", *columns], rows)


def _endings(each: Compared, results: Results) -> list[str]:
    """Return the names of a figure's cases without their dataset, the first part."""
    names = results.plan(each.published.suite)[each.cell.key].values()
    return [name.partition("-")[2] for name in names]


def _rows(each: Compared) -> Iterator[Row]:
    for clients in each.cell.runs.values():
        yield from clients.values()


def _entry(rows: Sequence[Row]) -> str:
    """Return the mean score as published, and in brackets by validation; a dash where nothing was run."""
    if not rows:
        return "-"
    means = [np.mean([float(row[RULES[rule]]) for row in rows]) for rule in (AS_PUBLISHED, _BY_VALIDATION)]
    return f"{means[0]:.2f} ({means[1]:.2f})"
