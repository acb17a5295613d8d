"""One setting switched at a time, paired by seed with the runs of the reference settings, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fedmpi.analysis.names import algorithm_name, dataset_name
from fedmpi.analysis.options import split_options
from fedmpi.analysis.rows import RULES
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import AS_PUBLISHED, HEADLINE
from fedmpi.reproduction.judgement import REFUTED, Question, judge
from fedmpi.reproduction.pairs import cells_of
from fedmpi.reproduction.results import Cell, Key, Results
from fedmpi.reproduction.statistics import Estimate
from fedmpi.reproduction.tables import markdown, number, signed

_SHOWN = (HEADLINE, AS_PUBLISHED)
_BASELINE = "fedavg"


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
    return markdown(headings, rows)


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
