"""Accuracies over the test graphs that no client was trained on, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedmpi.analysis.names import dataset_name
from fedmpi.analysis.rows import RULES
from fedmpi.reproduction import measures
from fedmpi.reproduction.cells import AS_PUBLISHED, HEADLINE
from fedmpi.reproduction.results import Cell
from fedmpi.reproduction.tables import markdown, method, number, signed

_BASELINE = "fedavg"


def clean_table(cells: Sequence[Cell]) -> str:
    """Return accuracies and leads without the test graphs that have a twin in a training set."""
    baselines = {cell.key.dataset: cell for cell in cells if cell.key.algorithm == _BASELINE}
    headings = ["dataset", "method", "seeds", "test graphs", "of these without a twin", "all: last round"]
    headings += [f"without twins: {rule}" for rule in RULES]
    headings += [f"without twins: lead over FedAvg, {rule}" for rule in (HEADLINE, AS_PUBLISHED)]
    rows = []
    for cell in cells:
        row = [dataset_name(cell.key.dataset), method(cell.key), str(len(cell.runs))]
        row += [_graphs(cell, "test_graphs"), _graphs(cell, "test_graphs_without_twins")]
        row.append(number(measures.average(cell, RULES[HEADLINE])))
        row += [number(measures.average(cell, _clean(rule))) for rule in RULES]
        baseline = baselines.get(cell.key.dataset)
        for rule in (HEADLINE, AS_PUBLISHED):
            apart = baseline is not None and baseline is not cell
            lead = measures.lead(cell, baseline, _clean(rule)) if apart and baseline is not None else None
            row.append(signed(lead))
        rows.append(row)
    return markdown(headings, rows)


def _clean(rule: str) -> str:
    return RULES[rule].replace("score", "score_without_twins")


def _graphs(cell: Cell, column: str) -> str:
    """Return how many test graphs the clients have together in one run."""
    return str(int(np.nansum(cell.values(column)[0])))
