"""Prints what runs would have scored had they ended after so many rounds without a better validation score.

    python bench/leaderboard/patience.py FOLDER [--rounds 20 40 60 100]

FOLDER holds the records of `fedmpi sweep leaderboard/patience-graphs`, whose runs end after 200 rounds. Each
line has the test score in the best round by validation, in points, mean over seeds: for each patience and
for all rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedmpi.analysis import scores
from fedmpi.analysis.cells import grouped
from fedmpi.store.folders import runs_below
from fedmpi.store.reader import Run, load_run
from fedmpi.tables.texts import markdown_of

Curve = npt.NDArray[np.float64]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, nargs="+", default=[20, 40, 60, 100])
    options = parser.parse_args()
    runs = [run for run in map(load_run, sorted(runs_below(options.folder))) if run.status == "complete"]
    groups = grouped(runs, lambda run: str(run.config["name"]).rpartition("-seed")[0])
    lines = [
        [
            name,
            len(same),
            *(f"{_mean(same, rounds):.1f}" for rounds in options.rounds),
            f"{_mean(same, 0):.1f}",
        ]
        for name, same in groups.items()
    ]
    print(markdown_of(("winner", "seeds", *map(str, options.rounds), "all rounds"), lines))
    return 0


def _mean(runs: list[Run], patience: int) -> float:
    """Return the mean test score of runs that end so, in points; 0: they do not end early."""
    return 100 * float(np.mean([_score(run, patience) for run in runs]))


def _score(run: Run, patience: int) -> float:
    val, test = (scores.curve(run.results, run.headline, part) for part in ("val", "test"))
    return float(
        test[int(np.argmax(run.headline.sign * val[: _last(run.headline.sign * val, patience) + 1]))]
    )


def _last(val: Curve, patience: int) -> int:
    """Return the last round, 0-based, as `fedmpi.runs.patience` ends a run; higher scores are better."""
    best = 0
    for round, score in enumerate(val):
        if 0 < patience < round - best:
            return round
        best = round if score > val[best] else best
    return len(val) - 1


if __name__ == "__main__":
    raise SystemExit(main())
