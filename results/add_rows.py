"""Adds rows of `fedmpi report --csv` to a file of such rows, in place.

Of a run that the file already has, blank cells are filled (those of a new column); other results are refused.

    fedmpi report results/runs/gcfl/table3 --by case --csv new.csv
    python results/add_rows.py results/reference/gcfl-table3.csv new.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

from fedmpi.analysis import rows

_OF_THE_RUN = (
    *("train_cpu_seconds", "train_wall_seconds", "run_wall_seconds", "run_ranks", "run_joules"),
    *("commit", "case", "suite"),
)
"""What another run of the same case may have otherwise."""


def added(known: list[dict[str, str]], new: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the known rows, blank cells filled, and behind them the rows of other runs."""
    found = {(row["config_digest"], row["client"]): row for row in known}
    for row in new:
        first = found.setdefault((row["config_digest"], row["client"]), row)
        for name, cell in row.items():
            if first.get(name, "") in ("", cell):
                first[name] = cell
            elif cell and name not in _OF_THE_RUN:
                place = f"{row['case']}, {row['client']}"
                sys.exit(f"{place}: {name} is {first[name]} in the first file and {cell} in the other")
    return list(found.values())


def main(path: Path, *new: Path) -> None:
    """Add the rows of all files to the first."""
    found = rows.read(path)
    for each in new:
        found = added(found, rows.read(each))
    path.write_text(rows.text(found))


main(*map(Path, sys.argv[1:]))
