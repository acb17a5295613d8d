"""Runs as CSV: one row per run and client, from which committed tables are made."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from fedmpi.analysis.options import option_text
from fedmpi.analysis.summary import per_client, setting, summarise
from fedmpi.errors import BadInput
from fedmpi.metrics.headline import headline
from fedmpi.store.reader import Run

COLUMNS = (
    "suite",
    "case",
    "dataset",
    "algorithm",
    "rounds",
    "options",
    "split_seed",
    "seed",
    "client",
    "train_graphs",
    "test_graphs",
    "test_accuracy",
    "test_accuracy_best_by_validation",
    "test_accuracy_as_published",
    "test_graphs_without_twins",
    "test_accuracy_without_twins",
    "test_accuracy_without_twins_best_by_validation",
    "test_accuracy_without_twins_as_published",
    "test_loss",
    "parameters",
    "shared_parameters",
    "train_cpu_seconds",
    "train_wall_seconds",
    "run_wall_seconds",
    "model_gflop",
    "run_executed_gflop",
    "client_megabytes",
    "commit",
    "numerics_version",
    "config_digest",
)
"""Columns in file order; accuracies are shares of 1, see docs/metrics.md. What begins with ``run_`` is of
the whole run and stands in each of its rows."""

CLUSTERING = ("clustering_accuracy", "clustering_f1")
"""Further columns, where a run has them: scores of the whole run in each of its rows."""

SCORED = ("score", "constant_score")
"""Further columns, where a run has one score over all clients' graphs: its name, and what a constant
prediction scores. Such a run has one row, client `ALL`, and the score stands in the columns of accuracy."""

ALL = "all clients"

_FURTHER = (CLUSTERING, SCORED)

RULES = {
    "last round": "test_accuracy",
    "best by validation": "test_accuracy_best_by_validation",
    "as published": "test_accuracy_as_published",
}
"""Columns of the accuracy by selection rule; only the last rule looks at test data to choose."""


def client_rows(run: Run) -> list[dict[str, Any]]:
    """Return a complete run's rows in client order.

    Raises
    ------
    BadInput
        The run is not complete: an unfinished run has no last round.
    """
    if run.status != "complete":
        raise BadInput(f"{run.folder}: {run.status}, not complete; finish it first or leave it out")
    sizes = run.partition["sizes"]
    provenance = run.lives[-1].provenance
    parameters = provenance.get("parameters", [""] * len(run.clients))
    cpu, wall = (np.nansum(run.measured(f"client_{name}_seconds"), axis=0) for name in ("cpu", "wall"))
    common = _common(run)
    if headline(run.results) is not None:
        return [{**common, **_of_all(run), "parameters": max(parameters)}]
    return [
        {
            **{name: row[name] for name in COLUMNS if name in row},
            **common,
            "train_graphs": int(sizes[place, 0]),
            "test_graphs": int(sizes[place, 2]),
            "parameters": parameters[place],
            "train_cpu_seconds": round(float(cpu[place]), 3),
            "train_wall_seconds": round(float(wall[place]), 3),
        }
        for place, row in enumerate(per_client(run))
    ]


def _common(run: Run) -> dict[str, Any]:
    """Return the columns that are the same for all clients of a run."""
    provenance, whole = run.lives[-1].provenance, summarise(run)
    return {
        "suite": run.config["suite"],
        "case": run.config["name"],
        "dataset": setting(run.config, "dataset"),
        "algorithm": setting(run.config, "algorithm"),
        "rounds": run.rounds,
        "options": option_text(run.config),
        "split_seed": run.config["partition"]["seed"],
        "seed": run.config["seed"],
        "shared_parameters": provenance.get("shared_parameters", ""),
        **{name: whole[name] for name in CLUSTERING if name in whole},
        "run_wall_seconds": round(whole["total_seconds"], 3),
        "run_executed_gflop": whole["executed_gflop"],
        "commit": provenance["source"].get("commit", ""),
        "numerics_version": run.numerics_version,
        "config_digest": run.config_digest,
    }


def _of_all(run: Run) -> dict[str, Any]:
    """Return what the one row of a run says whose score is over all clients' graphs."""
    sizes, whole = run.partition["sizes"], summarise(run)
    cpu, wall = (float(np.nansum(run.measured(f"client_{name}_seconds"))) for name in ("cpu", "wall"))
    rules = ("", "_best_by_validation", "_as_published")
    return {
        "client": ALL,
        "score": whole["score"],
        "constant_score": whole["test_score_constant"],
        **{f"test_accuracy{rule}": whole[f"test_score{rule}"] for rule in rules},
        "train_graphs": int(sizes[:, 0].sum()),
        "test_graphs": int(sizes[:, 2].sum()),
        "train_cpu_seconds": round(cpu, 3),
        "train_wall_seconds": round(wall, 3),
        "model_gflop": whole["model_gflop"],
        "client_megabytes": whole["client_megabytes"],
    }


def write(rows: Iterable[dict[str, Any]], stream: TextIO) -> None:
    """Write rows under `COLUMNS`, and what further columns one has; floats in full: nothing is lost."""
    listed = list(rows)
    more = [name for names in _FURTHER for name in names if any(names[0] in row for row in listed)]
    writer = csv.DictWriter(stream, (*COLUMNS, *more), lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file that `write` made.

    Raises
    ------
    BadInput
        The file cannot be read or has other columns.
    """
    try:
        with path.open(newline="") as stream:
            reader = csv.DictReader(stream)
            rows = list(reader)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot read these rows ({error})") from error
    chosen = itertools.product(*(((), names) for names in _FURTHER))
    known = [(*COLUMNS, *itertools.chain(*further)) for further in chosen]
    if tuple(reader.fieldnames or ()) not in known:
        raise BadInput(f"{path}: not a file of `fedmpi report --csv`: its columns differ")
    return [{**dict.fromkeys(itertools.chain(*_FURTHER), ""), **row} for row in rows]
