"""Runs as CSV: one row per run and client, from which committed tables are made."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from fedmpi.analysis.summary import per_client, setting
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run

COLUMNS = (
    "suite",
    "case",
    "dataset",
    "algorithm",
    "seed",
    "rounds",
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
    "train_cpu_seconds",
    "model_gflop",
    "client_megabytes",
    "commit",
    "numerics_version",
    "config_digest",
)
"""Columns in file order; accuracies are shares of 1, see docs/metrics.md."""


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
    cpu = np.nansum(run.measured("client_cpu_seconds"), axis=0)
    common = {
        "suite": run.config["suite"],
        "case": run.config["name"],
        "dataset": setting(run.config, "dataset"),
        "algorithm": setting(run.config, "algorithm"),
        "seed": run.config["seed"],
        "rounds": run.rounds,
        "commit": run.lives[-1].provenance["source"].get("commit", ""),
        "numerics_version": run.numerics_version,
        "config_digest": run.config_digest,
    }
    return [
        {
            **{name: row[name] for name in COLUMNS if name in row},
            **common,
            "train_graphs": int(sizes[place, 0]),
            "test_graphs": int(sizes[place, 2]),
            "train_cpu_seconds": round(float(cpu[place]), 3),
        }
        for place, row in enumerate(per_client(run))
    ]


def write(rows: Iterable[dict[str, Any]], stream: TextIO) -> None:
    """Write rows under `COLUMNS`; floats in full, so that nothing is lost."""
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


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
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise BadInput(f"{path}: not a file of `fedmpi report --csv`: its columns differ")
    return rows
