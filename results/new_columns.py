"""Gives CSV files of an older `fedmpi report --csv` the columns of today, which name the metric; in place.

Scores of any kind once stood under `test_accuracy`. No value changes; what a run
never had, as the accuracies of unsupervised runs, becomes blank. Files of today's columns stay as they are.

    python results/new_columns.py results/reference/*.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from fedmpi.analysis.rows import COLUMNS
from fedmpi.metrics.metric import ACCURACY, CLUSTERING_ACCURACY, METRICS

_BY_TITLE = {metric.title: metric.name for metric in METRICS.values()}


def renamed(row: dict[str, str]) -> dict[str, str]:
    """Return a row of the old columns under the new ones; a cell keeps its text."""
    title, clusters = row.pop("score", ""), row.pop(CLUSTERING_ACCURACY.name, "")
    found = {name.replace("test_accuracy", "score"): cell for name, cell in row.items()}
    found["metric"] = _BY_TITLE[title] if title else ACCURACY.name
    if clusters:
        scored = [name for name in found if name.startswith("score") or name.endswith("_without_twins")]
        found |= dict.fromkeys((*scored, "test_loss"), "")
        found |= {"metric": CLUSTERING_ACCURACY.name, "score": clusters}
    return found


def rewrite(path: Path) -> None:
    """Rewrite a file of old columns; leave any other alone."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    if not rows or "test_accuracy" not in rows[0]:
        return
    found = [renamed(row) for row in rows]
    further = [name for name in found[0] if name not in COLUMNS]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, (*COLUMNS, *further), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


for name in sys.argv[1:]:
    rewrite(Path(name))
