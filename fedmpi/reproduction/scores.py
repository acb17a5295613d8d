"""Published scores over all test graphs beside ours, and what changed settings score, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedmpi.analysis.rows import RULES
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, Compared, compare
from fedmpi.reproduction.results import Cell, Results, Row
from fedmpi.reproduction.tables import OURS, PAPER, Columns, answered, constant, signed
from fedmpi.tables.markdown import markdown_of

_CHOSEN = {AS_PUBLISHED: "chosen on test data as published", BY_VALIDATION: "chosen by validation"}

_LEAKS, _HONEST = "protocol=published", "protocol=honest"
_HONEST_HEADINGS = (
    *("table", "column", "method", "metric", "test examples in a training set"),
    *(
        "published protocol",
        "without these examples",
        "its constant",
        "honest protocol",
        "its constant",
        "seeds",
        "gain lost",
        "honest protocol - paper",
        "holds without leakage?",
    ),
)


def in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the published scores that can be computed, a line per question."""
    members = [each for each in found if not each.published.lacks]
    what = f"- Of {len(members)} published scores that can be computed here"
    return "".join(f"{what}, {_CHOSEN[rule]}: {answered(members, rule)}.\n" for rule in rules)


def _text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _constant(each: Compared) -> str:
    return _text(constant(each))


COLUMNS: Columns = {**PAPER, **OURS, "constant": _constant}


def honest_table(results: Results, found: Sequence[Compared]) -> str:
    """Return what is left of scores without leakage: a line per figure of the protocol "published".

    The honest scores are judged against the paper's figures by the rules of its tables.
    """
    leaky = [each for each in found if _LEAKS in each.published.cases.split() and each.cell.runs]
    figures = [each.published for each in leaky]
    honest = compare(
        [replace(figure, cases=figure.cases.replace(_LEAKS, _HONEST)) for figure in figures], results
    )
    if not leaky:
        return ""
    rows = [_honest_row(*pair) for pair in zip(leaky, honest, strict=True)]
    total = f"Of these {len(honest)} published scores without leakage: {answered(honest, BY_VALIDATION)}."
    return f"{markdown_of(_HONEST_HEADINGS, rows)}\n{total}\n"


def _honest_row(each: Compared, honest: Compared) -> list[str]:
    published = each.published
    assert published.score is not None
    scored, constants = [], []
    for one in (each, honest):
        estimate = one.ours[BY_VALIDATION]
        scored.append(math.nan if estimate is None else estimate.mean)
        constants.append(constant(one))
    gained = [published.score.sign * (score - floor) for score, floor in zip(scored, constants, strict=True)]
    return [
        *(published.place, published.column, published.row, published.metric, _leaked(each.cell)),
        *(_text(scored[0]), _text(_without_leaked(each.cell)), _text(constants[0])),
        *(_text(scored[1]), _text(constants[1]), f"{len(honest.cell.runs)}", _lost(*gained)),
        *(signed(honest.differences[BY_VALIDATION]), str(honest.judged[BY_VALIDATION])),
    ]


def _lost(published: float, honest: float) -> str:
    """Return which part of a gain over the constant is lost; "no gain" where there is none to lose."""
    if math.isnan(published - honest):
        return "-"
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


def _leaked(cell: Cell) -> str:
    """Return the share of the test examples that a training set holds."""
    clean, all_of_them = (cell.values(name).sum() for name in ("test_graphs_without_twins", "test_graphs"))
    return "-" if math.isnan(clean) else f"{100 * (1 - clean / all_of_them):.1f} %"


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
    usual = {each.published.row: _by_seed(each) for each in members}
    seeds = {
        column: sorted(set(rows).intersection(*(each[column] for each in changed.values() if column in each)))
        for column, rows in usual.items()
    }
    lines = [["published", *(each.published.printed for each in members)]]
    lines.append(["seeds, of both sides", *(", ".join(map(str, seeds[column])) or "-" for column in usual)])
    for name, by_method in {"the table's settings": usual, **changed}.items():
        lines.append([name, *(_entry(by_method.get(column, {}), seeds[column]) for column in usual)])
    return markdown_of(["change", *usual], lines)


def _changed(
    results: Results, suite: str, members: Sequence[Compared]
) -> dict[str, dict[str, dict[int, Row]]]:
    """Return a suite's rows by change, method and seed."""
    methods = {ending: each.published.row for each in members for ending in _endings(each, results)}
    changed: dict[str, dict[str, dict[int, Row]]] = {}
    for key, repetitions in results.plan(suite).items():
        runs = results.cell(key).runs
        for repetition in sorted(repetitions.keys() & runs.keys()):
            name = repetitions[repetition]
            ending = next(one for one in methods if name.startswith(f"{one}-"))
            by_method = changed.setdefault(name.removeprefix(f"{ending}-"), {})
            (row,) = runs[repetition].values()
            by_method.setdefault(methods[ending], {})[repetition.seed] = row
    return changed


def _endings(each: Compared, results: Results) -> list[str]:
    """Return the names of a figure's cases without their dataset, the first part."""
    names = results.plan(each.published.suite)[each.cell.key].values()
    return [name.partition("-")[2] for name in names]


def _by_seed(each: Compared) -> dict[int, Row]:
    """Return a figure's rows by seed: a run scored as a whole has one."""
    found = {}
    for repetition, clients in each.cell.runs.items():
        (found[repetition.seed],) = clients.values()
    return found


def _entry(rows: Mapping[int, Row], seeds: Sequence[int]) -> str:
    """Return the mean score as published, and in brackets by validation; a dash where nothing was run."""
    if not rows or not seeds:
        return "-"
    rules = (AS_PUBLISHED, BY_VALIDATION)
    means = [np.mean([float(rows[seed][RULES[rule]]) for seed in seeds]) for rule in rules]
    return f"{means[0]:.2f} ({means[1]:.2f})"
