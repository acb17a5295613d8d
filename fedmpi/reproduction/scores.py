"""Scores of whole runs and of clusters beside ours, and what changed settings score, as Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.rows import RULES
from fedmpi.judging.judgement import Judgement, Question, in_words, judge
from fedmpi.reproduction.cells import Compared, compare
from fedmpi.reproduction.claims import Stated
from fedmpi.reproduction.published import AS_PUBLISHED, BY_VALIDATION, CLUSTERING, HEADLINE, Claim
from fedmpi.reproduction.results import Cell, Results, Row
from fedmpi.reproduction.tables import (
    OURS,
    PAPER,
    Columns,
    answered,
    constant,
    page_table,
    pivot,
    refused,
    text,
)

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
    lines: list[list[object]] = [["published", *(each.published.value for each in members)]]
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


def clusters_in_short(found: Sequence[Compared], rules: Sequence[str]) -> str:
    """Return what became of the published scores and leads, a line per reading and metric."""
    lines = []
    readings = grouped(found, lambda each: each.published.reading)
    for reading, metric in product(readings, CLUSTERING):
        members = [each for each in readings[reading] if each.published.metric == metric]
        of_tables = grouped(members, lambda each: each.published.table)
        said = f"of {len(members)} published figures {answered(members, rules[0])}"
        leads = [answer.corrected for table in of_tables.values() for *_, answer in leads_of(table)]
        if leads:
            said += f"; of {len(leads)} leads of {members[0].published.paper} "
            said += in_words(leads, refused(members))
        title = f"{' and '.join(of_tables)}{f', {reading}' if reading else ''}"
        lines.append(f"- {title}, {metric}: {said}.\n")
    return "".join(lines)


def settings_table(results: Results, suite: str) -> str:
    """Return what other settings score: a line per setting, a column per dataset; empty if none was run.

    Parameters
    ----------
    suite : str
        Its cases are called after seed, dataset and setting, parted by hyphens, in any order.
    """
    found = {}
    for key, repetitions in results.plan(suite).items():
        name = next(iter(repetitions.values()))
        parts = [part for part in name.split("-") if part != key.dataset and not _SEED.fullmatch(part)]
        cell = results.cell(key, repetitions)
        if cell.runs:  # what a hyphen within a number has parted is put together again
            setting = re.sub(r"(\de) (\d)", r"\1-\2", " ".join(parts))
            found[setting, key.dataset] = _accuracy_and_f1(cell)
    return pivot("setting", found) if found else ""


_SEED = re.compile(r"seed\d+")


def _accuracy_and_f1(cell: Cell) -> str:
    """Return mean accuracy and macro F1 in percent, and over how many repetitions where it is one."""
    accuracy, f1 = (100 * cell.values(name).mean() for name in CLUSTERING.values())
    return f"{accuracy:.1f}, {f1:.1f}{'' if len(cell.runs) > 1 else ' (one)'}"


def lead_table(found: Sequence[Compared]) -> str:
    """Return the leads of `leads_of` as a table; empty where there are none."""
    leads = {
        (each.claim.claim, each.pair()[1].column): "; ".join(
            (f"{each.lead():+.4f}", text(question.estimate), str(answer))
        )
        for each, question, answer in leads_of(found)
    }
    return pivot("published; ours; holds?", leads) if leads else ""


def leads_of(found: Sequence[Compared]) -> list[tuple[Stated, Question, Judgement]]:
    """Return the leads of the paper's own method, paired by repetition; none where it is not there.

    Parameters
    ----------
    found : sequence of Compared
        The figures of one metric of one table: a family of judgements. The paper's method has its name.
    """
    figures = [each.published for each in found]
    cells = {each.cases: one.cell for each, one in zip(figures, found, strict=True)}
    own = {each.column: each.cases for each in figures if each.row == each.paper}
    stated = [
        Stated(
            Claim(
                *(each.paper, "lead", "table", each.place, f"{each.paper} over {each.row}", each.reading),
                *(each.metric, each.suite, own[each.column], each.cases, ""),
            ),
            figures,
            lambda _, cases: cells[cases],
        )
        for each in figures
        if own and each.row != each.paper
    ]
    questions = [each.question(HEADLINE) for each in stated]
    return list(zip(stated, questions, judge(questions), strict=True))


def _std(each: Compared) -> float | None:
    ours = each.ours[HEADLINE]
    return ours.std if ours is not None and ours.freedom else None


def _range(each: Compared) -> str | None:
    values = each.cell.values(CLUSTERING[each.published.metric])
    return f"{values.min():.4f} to {values.max():.4f}" if values.size else None


CLUSTERS: Columns = {
    "paper": PAPER["paper"],
    "repetitions": PAPER["seeds"],
    "mean": OURS[HEADLINE],
    "std": _std,
    "range": _range,
}
