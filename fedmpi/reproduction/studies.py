"""What is done beyond a paper's tables, as Markdown: baselines, twins, other splits, single switches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.names import algorithm_name, algorithm_place, dataset_name
from fedmpi.analysis.options import split_options
from fedmpi.analysis.rows import RULES
from fedmpi.analysis.summary import AGREEMENT
from fedmpi.judging.estimates import Estimate
from fedmpi.judging.judgement import REFUTED, Question, judge
from fedmpi.metrics import clients
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import AS_PUBLISHED, HEADLINE, MARGIN
from fedmpi.reproduction.claims import Book
from fedmpi.reproduction.published import Claim, Published
from fedmpi.reproduction.results import Cell, Float, Key, Results
from fedmpi.reproduction.tables import method, number, signed
from fedmpi.tables.markdown import markdown_of

_BASELINES = ("fedavg", "self-train")
_ALONE = "self-train"
_BASELINE = "fedavg"
_SHOWN = (HEADLINE, AS_PUBLISHED)


def cells_of(results: Results, suite: str) -> list[Cell]:
    """Return the cells of a suite that have runs, by dataset, those of a dataset in the usual order."""
    cells = [cell for cell, _ in results.planned(suite) if cell.runs]
    datasets = list(dict.fromkeys(cell.key.dataset for cell in cells))
    return sorted(
        cells,
        key=lambda cell: (
            datasets.index(cell.key.dataset),
            algorithm_place(cell.key.algorithm),
            cell.key.rounds,
            cell.key.options,
        ),
    )


def lead_table(cells: Sequence[Cell]) -> str:
    """Return every method's lead over FedAvg and self-train, paired by seed."""
    rows = []
    for ours, other in _pairs(cells):
        leads = [measures.lead(ours, other, column) for column in RULES.values()]
        if leads[0] is not None:
            names = [dataset_name(ours.key.dataset), method(ours.key), method(other.key)]
            rows.append([*names, str(leads[0].count), *map(signed, leads)])
    return markdown_of(["dataset", "method", "against", "seeds", *RULES], rows)


def gain_table(cells: Sequence[Cell]) -> str:
    """Return every method's gains over each self-train: the smallest and whose, clients that gain >= 0."""
    rows = []
    for ours, other in _pairs(cells):
        found = [measures.gains(ours, other, column) for column in RULES.values()]
        if other.key.algorithm != _ALONE or found[0] is None:
            continue
        shown = [f"{one.least.signed} ({one.client}); {one.ratio}" for one in found if one is not None]
        names = [dataset_name(ours.key.dataset), method(ours.key), method(other.key)]
        rows.append([*names, str(found[0].mean.count), *shown])
    return markdown_of(["dataset", "method", "over", "seeds", *RULES], rows)


def spread_table(cells: Sequence[Cell], figures: Sequence[Published], results: Results) -> str:
    """Return both standard deviations over seeds, of a client (as papers print it) and of the average."""
    printed = {
        results.one(figure.suite, figure.cases)[0].key: figure.spread
        for figure in figures
        if figure.spread is not None
    }
    rows = []
    for cell in cells:
        spread = printed.get(cell.key)
        shown = [_spreads(cell, column) for column in RULES.values()]
        names = [dataset_name(cell.key.dataset), method(cell.key), str(len(cell.runs))]
        rows.append([*names, *shown, "-" if spread is None else f"{spread:.3f}"])
    return markdown_of(["dataset", "method", "seeds", *RULES, "published, of a client"], rows)


def _pairs(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Yield each method with each baseline; of two self-trains the longer is the method."""
    for ours in cells:
        for other in cells:
            alone = ours.key.algorithm == _ALONE
            baseline = other.key.algorithm in _BASELINES and ours.key.dataset == other.key.dataset
            longer = ours.key.rounds > other.key.rounds
            same = ours.key.algorithm == other.key.algorithm
            if baseline and (longer if same else not alone):
                yield ours, other


def _spreads(cell: Cell, column: str) -> str:
    values = cell.values(column)
    if len(values) < 2:
        return "-"
    return f"{clients.std_over_seeds(values):.4f}, {clients.std_of_average(values):.4f}"


def domain_table(cells: Sequence[Cell]) -> str:
    """Return how well clusters follow domains, by configuration; empty where no row says it."""
    known = [(cell, values) for cell in cells if len(values := _known(measures.averages(cell, AGREEMENT)))]
    rows = [
        [
            *(
                dataset_name(cell.key.dataset),
                method(cell.key),
                _apart(cell.key, [one.key for one, _ in known]),
            ),
            *(str(len(values)), f"{values.mean():.3f}", ", ".join(f"{value:.2f}" for value in values)),
        ]
        for cell, values in known
    ]
    headings = ["datasets", "method", "settings", "runs", "mean", "each run"]
    return markdown_of(headings, rows) if rows else ""


def _known(values: Float) -> Float:
    return values[~np.isnan(values)]


def _apart(key: Key, keys: Sequence[Key]) -> str:
    """Return the settings that not all configurations of a method have."""
    usual = [set(split_options(each.options).items()) for each in keys if each.algorithm == key.algorithm]
    kept = set.intersection(*usual)
    return ", ".join(
        f"{name} = {value}" for name, value in split_options(key.options).items() if (name, value) not in kept
    )


def clean_table(cells: Sequence[Cell]) -> str:
    """Return accuracies and leads without the test graphs that have a twin in a training set."""
    baselines = {cell.key.dataset: cell for cell in cells if cell.key.algorithm == _BASELINE}
    headings = ["dataset", "method", "seeds", "test graphs", "of these without a twin", "all: last round"]
    headings += [f"without twins: {rule}" for rule in RULES]
    headings += [f"without twins: lead over FedAvg, {rule}" for rule in _SHOWN]
    rows = []
    for cell in cells:
        row = [dataset_name(cell.key.dataset), method(cell.key), str(len(cell.runs))]
        row += [_graphs(cell, "test_graphs"), _graphs(cell, "test_graphs_without_twins")]
        row.append(number(measures.average(cell, RULES[HEADLINE])))
        row += [number(measures.average(cell, _clean(rule))) for rule in RULES]
        baseline = baselines.get(cell.key.dataset)
        for rule in _SHOWN:
            apart = baseline is not None and baseline is not cell
            lead = measures.lead(cell, baseline, _clean(rule)) if apart and baseline is not None else None
            row.append(signed(lead))
        rows.append(row)
    return markdown_of(headings, rows)


def _clean(rule: str) -> str:
    return RULES[rule].replace("score", "score_without_twins")


def _graphs(cell: Cell, column: str) -> str:
    """Return how many test graphs the clients have together in one run."""
    return str(int(np.nansum(cell.values(column)[0])))


_Pair = tuple[Cell, Cell]


def split_accuracies(results: Results, reference: str, splits: str) -> str:
    """Return mean and standard deviation over the seeds of the published split, and over other splits."""
    published = {cell.key: cell for cell in cells_of(results, reference)}
    rows = []
    for cell in cells_of(results, splits):
        first = published.get(cell.key)
        row = [dataset_name(cell.key.dataset), method(cell.key)]
        row += ["0" if first is None else str(len(first.runs)), str(len(cell.runs))]
        for rule in _SHOWN:
            for one in (first, cell):
                row.append("-" if one is None else _mean_and_std(measures.average(one, RULES[rule])))
        rows.append(row)
    headings = ["dataset", "method", "seeds", "other splits"]
    for rule in _SHOWN:
        headings += [f"{rule}, published split", f"{rule}, other splits"]
    return markdown_of(headings, rows)


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
    book = Book(figures, results)
    elsewhere = {cell.key: cell for cell in cells_of(results, splits)}
    rows: list[list[str]] = []
    pairs: list[tuple[_Pair, _Pair, Claim]] = []
    for claim in claims:
        if claim.kind != "lead":
            continue
        here = book.pair(claim)
        if all(cell.key in elsewhere for cell in here):
            pairs.append((here, (elsewhere[here[0].key], elsewhere[here[1].key]), claim))
            rows.append([claim.claim, f"{book.lead(claim):+.4f}"])
    headings = ["claim", "published"]
    for rule, column in RULES.items():
        questions = []
        for row, (here, there, claim) in zip(rows, pairs, strict=True):
            other = measures.lead(*there, column)
            row += [_counted(measures.lead(*here, column), "seeds"), _counted(other, "splits")]
            questions.append(Question(other, book.lead(claim) - MARGIN, math.inf, book.unpublished(claim)))
        for row, answer in zip(rows, judge(questions), strict=True):
            row.append(str(answer).replace("seed", "split"))
        headings += [f"{rule}: published split", "other splits", "verdict on these"]
    return markdown_of(headings, rows)


def _counted(lead: Estimate | None, what: str) -> str:
    return "-" if lead is None else f"{lead.signed} ({lead.count} {what})"


def _mean_and_std(average: Estimate | None) -> str:
    if average is None:
        return "-"
    return number(average) if not average.freedom else f"{number(average)}, {average.std:.4f}"


@dataclass(frozen=True)
class _Switched:
    """A cell, the reference it differs from, and FedAvg under the same settings outside the algorithm."""

    cell: Cell
    reference: Cell
    baseline: Cell
    text: str

    def effect(self, rule: str) -> Estimate | None:
        """Return the difference to the reference, paired by seed."""
        return measures.lead(self.cell, self.reference, RULES[rule])

    def is_identical(self) -> bool:
        """Whether every accuracy is the reference's, in each seed that both have."""
        both = self.cell.shared(self.reference)
        tables = [(self.cell.values(c, both), self.reference.values(c, both)) for c in RULES.values()]
        return all(bool((ours == other).all()) for ours, other in tables)


def ablation_table(results: Results, suite: str, reference: str) -> str:
    """Return the effect of each switch; whether it is one is corrected for the number of switches."""
    found = list(_switches(results, suite, reference))
    judged = {rule: judge([Question(one.effect(rule), 0.0, 0.0) for one in found]) for rule in _SHOWN}
    headings = ["dataset", "method", "switch", "seeds"]
    for rule in _SHOWN:
        headings += [rule, f"{rule}: effect", "an effect?", f"{rule}: lead over FedAvg"]
    rows = []
    for place, one in enumerate(found):
        key = one.cell.key
        row = [dataset_name(key.dataset), algorithm_name(key.algorithm), one.text]
        row.append(str(len(one.cell.shared(one.reference))))
        for rule in _SHOWN:
            surely = "yes" if judged[rule][place].corrected == REFUTED else "not shown"
            lead = None if key.algorithm == _BASELINE else measures.lead(one.cell, one.baseline, RULES[rule])
            row += [number(measures.average(one.cell, RULES[rule])), signed(one.effect(rule))]
            row += ["none: identical" if one.is_identical() else surely, signed(lead)]
        rows.append(row)
    return markdown_of(headings, rows)


def _switches(results: Results, suite: str, reference: str) -> Iterable[_Switched]:
    """Yield the reference settings of each method, then its switches."""
    known = cells_of(results, reference)
    switched = cells_of(results, suite)
    for first in known:
        key = first.key
        members = [cell for cell in switched if cell.key[:3] == key[:3] and cell.shared(first)]
        for cell in members:
            yield _Switched(cell, first, _baseline(results, cell.key), _difference(cell.key, key))


def _baseline(results: Results, key: Key) -> Cell:
    options = split_options(key.options)
    outside = {name: value for name, value in options.items() if not name.startswith("algorithm.")}
    text = " ".join(f"{name}={value}" for name, value in outside.items())
    return results.cell(key._replace(algorithm=_BASELINE, options=text))


def _difference(key: Key, reference: Key) -> str:
    """Return the settings in which two configurations differ, as those of the first."""
    ours, other = split_options(key.options), split_options(reference.options)
    parts = [f"{name.removeprefix('algorithm.')} = {value}" for name, value in ours.items()]
    usual = {f"{name.removeprefix('algorithm.')} = {value}" for name, value in other.items()}
    return ", ".join(part for part in parts if part not in usual)
