"""Fills blank constants in files of `fedmpi report --csv`, in place, for runs that did not record them.

These are `constant_score`, and `constant_NAME` of further metrics.

Nothing is trained. Rows whose settings are those of no case of their suite stay as they are.

    python results/add_constants.py results/reference/gcfl-table3.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

from fedmpi.analysis import rows
from fedmpi.client.constant import Scores, constants
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.metrics.metric import METRICS
from fedmpi.registry.check import check_suite
from fedmpi.store import disk


def main(path: Path) -> None:
    """Fill one file."""
    source, found = DataSource.from_environment(), rows.read(path)
    lacking = [(row, blank) for row in found if (blank := _blank(row))]
    known: dict[tuple[str, ...], Scores] = {}
    filled = 0
    for name in dict.fromkeys(row["suite"] for row, _ in lacking):
        cases = {each.case.digest(): each for each in check_suite(read(locations.find(name)))}
        for row, blank in lacking:
            checked = cases.get(row["config_digest"]) if row["suite"] == name else None
            if checked is None or checked.algorithm.pools:
                continue
            case = checked.case
            place = tuple(map(str, (case.dataset, case.partition, case.objective, case.task, case.record)))
            if place not in known:
                source.prepare(case.dataset.name)
                known[place] = constants(case, source)
            for column, metric in blank.items():
                score = known[place].of(metric, row["client"])
                if score is not None:
                    row[column], filled = str(score), filled + 1
    disk.write_whole(path, rows.text(found).encode())
    sys.stdout.write(f"{path}: {filled} of {sum(len(blank) for _, blank in lacking)} blank cells filled\n")


def _blank(row: dict[str, str]) -> dict[str, str]:
    """Return the columns of constants that a row lacks, with their metrics."""
    further = {f"constant_{name}": name for name in METRICS if row.get(name)}
    wanted = {"constant_score": row["metric"], **further}
    return {column: metric for column, metric in wanted.items() if not row.get(column)}


for each in sys.argv[1:]:
    main(Path(each))
