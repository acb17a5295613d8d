"""What is done beyond a paper's tables, as Markdown: baselines, twins, other splits, single switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from fedmpi.analysis.names import algorithm_name, algorithm_place, dataset_name
from fedmpi.analysis.options import split_options
from fedmpi.analysis.rows import RULES
from fedmpi.analysis.summary import AGREEMENT
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import REFUTED, Question, judge
from fedmpi.metrics import clients
from fedmpi.reproduction import measures
from fedmpi.reproduction.claims import Stated
from fedmpi.reproduction.published import AS_PUBLISHED, HEADLINE, Claim, Published
from fedmpi.reproduction.results import Cell, Key, Results
from fedmpi.reproduction.tables import mean, method, named, page_table, text

_BASELINES = ("fedavg", "self-train")
_ALONE = "self-train"
_BASELINE = "fedavg"
_SHOWN = (HEADLINE, AS_PUBLISHED)


def cells_of(results: Results, suite: str) -> list[Cell]:
    """Return the cells of a suite that have runs, by dataset, those of a dataset in the usual order."""
    cells = [cell for cell in results.planned(suite) if cell.runs]
    datasets = list(dict.fromkeys(cell.key.dataset for cell in cells))

    def place(cell: Cell) -> tuple[int, int, int, str]:
        key = cell.key
        return datasets.index(key.dataset), algorithm_place(key.algorithm), key.rounds, key.options

    return sorted(cells, key=place)


def lead_table(cells: Sequence[Cell]) -> str:
    """Return every method's lead over FedAvg and self-train, paired by seed."""
    rows = []
    for ours, other in _pairs(cells):
        leads = [measures.lead(ours, other, column) for column in RULES.values()]
        if leads[0] is not None:
            rows.append([*named(ours.key), method(other.key), leads[0].count, *leads])
    return page_table(["dataset", "method", "against", "seeds", *RULES], rows)


def gain_table(cells: Sequence[Cell]) -> str:
    """Return every method's gains over each self-train: the smallest and whose, clients that gain >= 0."""
    rows = []
    for ours, other in _pairs(cells):
        gains = [measures.gains(ours, other, column) for column in RULES.values()]
        found = [one for one in gains if one is not None]
        if other.key.algorithm == _ALONE and found:
            shown = [
                f"{one.least.signed} ({one.client}); {measures.ratio(one.improved, one.clients)}"
                for one in found
            ]
            rows.append([*named(ours.key), method(other.key), found[0].least.count, *shown])
    return page_table(["dataset", "method", "over", "seeds", *RULES], rows)


def spread_table(cells: Sequence[Cell], figures: Sequence[Published], results: Results) -> str:
    """Return both standard deviations over seeds, of a client (as papers print it) and of the average."""
    printed = {
        results.one(figure.suite, figure.cases).key: f"{figure.spread:.3f}"
        for figure in figures
        if figure.spread is not None
    }
    rows = []
    for cell in cells:
        shown = [_spreads(cell, column) for column in RULES.values()]
        rows.append([*named(cell.key), len(cell.runs), *shown, printed.get(cell.key)])
    return page_table(["dataset", "method", "seeds", *RULES, "published, of a client"], rows)


def _pairs(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Yield each method with each baseline; of two self-trains the longer is the method."""
    for ours, other in product(cells, cells):
        one, base = ours.key, other.key
        is_method = one.rounds > base.rounds if one.algorithm == base.algorithm else one.algorithm != _ALONE
        if is_method and base.algorithm in _BASELINES and one.dataset == base.dataset:
            yield ours, other


def _spreads(cell: Cell, column: str) -> str | None:
    values = cell.values(column)
    if len(values) < 2:
        return None
    return f"{clients.std_over_seeds(values):.4f}, {clients.std_of_average(values):.4f}"


def domain_table(cells: Sequence[Cell]) -> str:
    """Return how well clusters follow domains, by configuration; empty where no row says it."""
    averages = [(cell.key, measures.averages(cell, AGREEMENT)) for cell in cells]
    known = [(key, shown) for key, values in averages if len(shown := values[~np.isnan(values)])]
    rows = [
        [
            *(*named(key), _apart(key, [one for one, _ in known]), len(values), f"{values.mean():.3f}"),
            ", ".join(f"{value:.2f}" for value in values),
        ]
        for key, values in known
    ]
    headings = ["datasets", "method", "settings", "runs", "mean", "each run"]
    return page_table(headings, rows) if rows else ""


def _apart(key: Key, keys: Sequence[Key]) -> str:
    """Return the settings that not all configurations of a method have."""
    settings = [_settings(each) for each in keys if each.algorithm == key.algorithm]
    shared = set.intersection(*map(set, settings))
    return ", ".join(each for each in _settings(key) if each not in shared)


def _settings(key: Key) -> list[str]:
    return [f"{name} = {value}" for name, value in split_options(key.options).items()]


def clean_table(cells: Sequence[Cell]) -> str:
    """Return accuracies and leads without the test graphs that have a twin in a training set."""
    baselines = {cell.key.dataset: cell for cell in cells if cell.key.algorithm == _BASELINE}
    headings = ["dataset", "method", "seeds", "test graphs", "of these without a twin", "all: last round"]
    headings += [f"without twins: {rule}" for rule in RULES]
    headings += [f"without twins: lead over FedAvg, {rule}" for rule in _SHOWN]
    rows = []
    for cell in cells:
        baseline = baselines.get(cell.key.dataset, cell)
        rows.append(
            [
                *(*named(cell.key), len(cell.runs)),
                *(int(np.nansum(cell.values(f"test_graphs{part}")[0])) for part in ("", "_without_twins")),
                *(mean(measures.average(cell, column)) for column in (RULES[HEADLINE], *map(clean, RULES))),
                *(
                    None if baseline is cell else measures.lead(cell, baseline, clean(rule))
                    for rule in _SHOWN
                ),
            ]
        )
    return page_table(headings, rows)


def clean(rule: str) -> str:
    """Return the column of the score under a rule over test examples without twins in a training set."""
    return RULES[rule].replace("score", "score_without_twins")


def split_accuracies(results: Results, reference: str, splits: str) -> str:
    """Return mean and standard deviation over the seeds of the published split, and over other splits."""
    published = {cell.key: cell for cell in cells_of(results, reference)}
    pairs = [(published.get(cell.key), cell) for cell in cells_of(results, splits)]
    rows = [
        [
            *(*named(cell.key), len(first.runs) if first else 0, len(cell.runs)),
            *(_mean_and_std(one, RULES[rule]) for rule in _SHOWN for one in (first, cell)),
        ]
        for first, cell in pairs
    ]
    headings = [f"{rule}, {which}" for rule in _SHOWN for which in ("published split", "other splits")]
    return page_table(["dataset", "method", "seeds", "other splits", *headings], rows)


def split_leads(results: Results, splits: str, claims: Sequence[Claim], figures: Sequence[Published]) -> str:
    """Return claimed leads on the published split and on other splits, which are judged.

    The published split's runs share it, so they are no repetitions of the others: the two stay apart.

    Parameters
    ----------
    results : Results
    splits : str
        Suite of the runs on other splits.
    claims : sequence of Claim
        Those of leads count.
    figures : sequence of Published
    """
    elsewhere = {cell.key: cell for cell in cells_of(results, splits)}
    stated = [Stated(claim, figures, results.one) for claim in claims if claim.kind == "lead"]
    stated = [each for each in stated if all(cell.key in elsewhere for cell in each.cells)]
    others = [replace(each, cell_of=lambda *of: elsewhere[results.one(*of).key]) for each in stated]
    rows: list[list[object]] = [[each.claim.claim, f"{each.lead():+.4f}"] for each in stated]
    headings = ["claim", "published"]
    for rule in RULES:
        asked = [[each.question(rule) for each in which] for which in (stated, others)]
        for row, ours, other, answer in zip(rows, *asked, judge(asked[1]), strict=True):
            row += [_counted(ours.estimate, "seeds"), _counted(other.estimate, "splits")]
            row.append(str(answer).replace("seed", "split"))
        headings += [f"{rule}: published split", "other splits", "verdict on these"]
    return page_table(headings, rows)


def _counted(lead: Estimate | None, what: str) -> str | None:
    return None if lead is None else f"{lead.signed} ({lead.count} {what})"


def _mean_and_std(cell: Cell | None, column: str) -> str | None:
    average = None if cell is None else measures.average(cell, column)
    if average is None:
        return None
    return text(average.mean) + (f", {average.std:.4f}" if average.freedom else "")


def ablation_table(results: Results, suite: str, reference: str) -> str:
    """Return the effect of each switch; whether it is one is corrected for the number of switches.

    Cells stand beside the reference settings of their method, and FedAvg under the same ones outside of it.
    """
    switched = [
        (cell, first, results.cell(_baseline(cell.key)))
        for first in cells_of(results, reference)
        for cell in cells_of(results, suite)
        if cell.key[:3] == first.key[:3] and cell.shared(first)
    ]
    headings = ["dataset", "method", "switch", "seeds"]
    rows: list[list[object]] = [
        [
            *(dataset_name(cell.key.dataset), algorithm_name(cell.key.algorithm)),
            *(_switch(cell.key, first.key), len(cell.shared(first))),
        ]
        for cell, first, _ in switched
    ]
    for rule in _SHOWN:
        column = RULES[rule]
        effects = [measures.lead(cell, first, column) for cell, first, _ in switched]
        judged = judge([Question(effect, 0.0, 0.0) for effect in effects])
        for row, (cell, first, baseline), effect, answer in zip(rows, switched, effects, judged, strict=True):
            surely = "yes" if answer.corrected == REFUTED else "not shown"
            others = None if cell.key.algorithm == _BASELINE else measures.lead(cell, baseline, column)
            row += [mean(measures.average(cell, column)), effect]
            row += ["none: identical" if _identical(cell, first) else surely, others]
        headings += [rule, f"{rule}: effect", "an effect?", f"{rule}: lead over FedAvg"]
    return page_table(headings, rows)


def _switch(key: Key, reference: Key) -> str:
    """Return the settings that the reference does not have."""
    usual = _settings(reference)
    return ", ".join(each.removeprefix("algorithm.") for each in _settings(key) if each not in usual)


def _identical(cell: Cell, other: Cell) -> bool:
    """Return whether every accuracy is the other's, in each seed that both have."""
    both = cell.shared(other)
    return all((cell.values(name, both) == other.values(name, both)).all() for name in RULES.values())


def _baseline(key: Key) -> Key:
    options = split_options(key.options).items()
    outside = [f"{name}={value}" for name, value in options if not name.startswith("algorithm.")]
    return key._replace(algorithm=_BASELINE, options=" ".join(outside))
