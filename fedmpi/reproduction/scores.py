"""Published scores over all test graphs beside ours, and what changed settings score, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedmpi.analysis.rows import RULES
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, Compared, compare
from fedmpi.reproduction.results import Cell, Results, Row
from fedmpi.reproduction.tables import OURS, PAPER, Columns, answered, constant, page_table

_CHOSEN = {AS_PUBLISHED: "chosen on test data as published", BY_VALIDATION: "chosen by validation"}

_LEAKS, _HONEST = "protocol=published", "protocol=honest"
_HONEST_HEADINGS = (
    *("table", "column", "method", "metric", "test examples in a training set", "published protocol"),
    *("without these examples", "its constant", "honest protocol", "its constant", "seeds", "gain lost"),
    *("honest protocol - paper", "holds without leakage?"),
)

COLUMNS: Columns = {**PAPER, **OURS, "constant": constant}


def in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the published scores that can be computed, a line per question."""
    members = [each for each in found if not each.published.lacks]
    what = f"- Of {len(members)} published scores that can be computed here"
    return "".join(f"{what}, {_CHOSEN[rule]}: {answered(members, rule)}.\n" for rule in rules)


def honest_table(results: Results, found: Sequence[Compared]) -> str:
    """Return what is left of scores without leakage: a line per figure of the protocol "published".

    The honest scores are judged against the paper's figures by the rules of its tables.
    """
    leaky = [each for each in found if _LEAKS in each.published.cases.split() and each.cell.runs]
    figures = [replace(each.published, cases=each.published.cases.replace(_LEAKS, _HONEST)) for each in leaky]
    honest = compare(figures, results)
    if not leaky:
        return ""
    rows = [_honest_row(*pair) for pair in zip(leaky, honest, strict=True)]
    total = f"Of these {len(honest)} published scores without leakage: {answered(honest, BY_VALIDATION)}."
    return f"{page_table(_HONEST_HEADINGS, rows)}\n{total}\n"


def _honest_row(each: Compared, honest: Compared) -> list[object]:
    published = each.published
    assert published.score is not None
    scored = [one.mean if one else math.nan for one in (each.ours[BY_VALIDATION], honest.ours[BY_VALIDATION])]
    constants = [constant(each), constant(honest)]
    gained = [published.score.sign * (score - floor) for score, floor in zip(scored, constants, strict=True)]
    return [
        *(published.place, published.column, published.row, published.metric, _leaked(each.cell)),
        *(scored[0], _without_leaked(each.cell), constants[0]),
        *(scored[1], constants[1], len(honest.cell.runs), _lost(*gained)),
        *(honest.differences[BY_VALIDATION], honest.judged[BY_VALIDATION]),
    ]


def _lost(published: float, honest: float) -> str | None:
    """Return which part of a gain over the constant is lost; "no gain" where there is none to lose."""
    if math.isnan(published - honest):
        return None
    if published <= 0:
        return "no gain"
    return "all" if honest <= 0 else f"{100 * (1 - honest / published):.0f} %"


def _without_leaked(cell: Cell) -> float:
    """Return the share of right predictions among the test examples that no training set holds."""
    clean, right = (
        cell.values(name) for name in ("test_graphs_without_twins", "score_without_twins_best_by_validation")
    )
    known = ~np.isnan(clean) & ~np.isnan(right)
    return float(np.average(right[known], weights=clean[known])) if known.any() else math.nan


def _leaked(cell: Cell) -> str | None:
    """Return the share of the test examples that a training set holds."""
    clean, all_of_them = (cell.values(name).sum() for name in ("test_graphs_without_twins", "test_graphs"))
    return None if math.isnan(clean) else f"{100 * (1 - clean / all_of_them):.1f} %"


def changes_table(results: Results, suite: str, found: Sequence[Compared]) -> str:
    """Return what each change of a suite scores, beside the figures that it changes.

    Both sides are means over the same seeds: those that the table's runs and every change of a method have.

    Parameters
    ----------
    suite : str
        Its cases are called as those of the published table, behind the dataset, and then the change:
        ``seed1-gcn-fedavg-rounds-150`` beside ``FreeSolv-seed1-gcn-fedavg``.
    found : sequence of Compared
        The published figures; those of other datasets are left out.
    """
    names = {key.dataset for key in results.plan(suite)}
    members = [each for each in found if each.cell.key.dataset in names and each.cell.runs]
    changed = _changed(results, suite, members)
    if not changed:
        return ""
    usual = {each.published.row: _by_seed(each.cell) for each in members}
    seeds = {
        column: sorted(set(rows).intersection(*(each[column] for each in changed.values() if column in each)))
        for column, rows in usual.items()
    }
    lines: list[list[object]] = [["published", *(each.published.printed for each in members)]]
    lines.append(["seeds, of both sides", *(", ".join(map(str, seeds[column])) or None for column in usual)])
    for name, by_method in {"the table's settings": usual, **changed}.items():
        lines.append([name, *(_entry(by_method.get(column, {}), seeds[column]) for column in usual)])
    return page_table(["change", *usual], lines)


def _changed(
    results: Results, suite: str, members: Sequence[Compared]
) -> dict[str, dict[str, dict[int, Row]]]:
    """Return a suite's rows by change, method and seed."""
    methods = {
        name.partition("-")[2]: each.published.row
        for each in members
        for name in results.plan(each.published.suite)[each.cell.key].values()
    }
    changed: dict[str, dict[str, dict[int, Row]]] = {}
    for key, repetitions in results.plan(suite).items():
        for repetition, rows in results.cell(key, repetitions).runs.items():
            name = repetitions[repetition]
            ending = next(one for one in methods if name.startswith(f"{one}-"))
            by_method = changed.setdefault(name.removeprefix(f"{ending}-"), {})
            (by_method.setdefault(methods[ending], {})[repetition.seed],) = rows.values()
    return changed


def _by_seed(cell: Cell) -> dict[int, Row]:
    """Return the rows of a cell; a run scored as a whole has one."""
    return {repetition.seed: row for repetition, rows in cell.runs.items() for row in rows.values()}


def _entry(rows: Mapping[int, Row], seeds: Sequence[int]) -> str | None:
    """Return the mean score as published, and in brackets by validation; none where nothing was run."""
    if not rows or not seeds:
        return None
    rules = (AS_PUBLISHED, BY_VALIDATION)
    means = [np.mean([float(rows[seed][RULES[rule]]) for seed in seeds]) for rule in rules]
    return f"{means[0]:.2f} ({means[1]:.2f})"
