"""Runs as CSV: one row per run and client, from which committed tables are made."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from fedmpi.analysis.options import option_text
from fedmpi.analysis.summary import per_client, setting, summarise
from fedmpi.config.documents import short
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

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""What makes a spreadsheet read text as a formula; the apostrophe so that `read` gives back the text."""

_FURTHER = (CLUSTERING, SCORED)

_TEXTS = ("suite", "case", "dataset", "algorithm", "options", "client", "commit", "config_digest", "score")

RULES = {
    "last round": "test_accuracy",
    "best by validation": "test_accuracy_best_by_validation",
    "as published": "test_accuracy_as_published",
}
"""Columns of the accuracy by selection rule; only the last rule looks at test data to choose."""

_WHOLE = ("rounds", "split_seed", "seed")
"""Whole numbers. The other columns that are no text hold any number."""

_NEVER_BLANK = (*_WHOLE, "run_wall_seconds", *RULES.values())

_LARGEST = 1e39
"""Above what float32 holds, in which losses and scores are; sums and squares of it are still numbers."""


def client_rows(run: Run) -> list[dict[str, Any]]:
    """Return a complete run's rows in client order.

    Raises
    ------
    BadInput
        The run is not complete: an unfinished run has no last round.
    """
    if run.status != "complete":
        raise BadInput(f"{run.folder}: {run.status}, not complete; finish it first or leave it out")
    if "sizes" not in run.partition:
        raise BadInput(f"{run.folder}: its record does not say how many graphs each client has")
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
        "commit": provenance.get("source", {}).get("commit", ""),
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
    writer.writerows({name: _as_text(value) for name, value in row.items()} for row in listed)


def _as_text(value: Any) -> Any:
    """Return a cell; text that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _as_written(cell: str) -> str:
    """Return what `_as_text` made a cell from."""
    marked = cell.startswith("'") and cell[1:].startswith(_FORMULA)
    return cell[1:] if marked else cell


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file that `write` made.

    Raises
    ------
    BadInput
        The file cannot be read, has other columns, or a row that is cut or has text in place of a number.
    """
    try:
        if path.is_char_device():
            raise BadInput(f"{path}: a device, no file of rows")
        with path.open(newline="") as stream:
            reader = csv.DictReader(stream)
            _refuse_other_columns(tuple(reader.fieldnames or ()), path)
            return [_checked(row, f"{path}, line {reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: cannot read these rows ({error})") from error


def _refuse_other_columns(names: tuple[str, ...], path: Path) -> None:
    chosen = itertools.product(*(((), names) for names in _FURTHER))
    if names not in [(*COLUMNS, *itertools.chain(*further)) for further in chosen]:
        raise BadInput(f"{path}: not a file of `fedmpi report --csv`: its columns differ")


def _checked(row: Mapping[Any, Any], place: str) -> dict[str, str]:
    """Return a row with all columns, its text as it was before `write`; raise BadInput if it is damaged."""
    if None in row or None in row.values():
        raise BadInput(f"{place}: not as many cells as columns; the file is damaged, make it again")
    for name, cell in row.items():
        if name not in _TEXTS and not _fits(name, cell):
            raise BadInput(f"{place}: {name} = {short(cell)}; the file is damaged, make it again")
    further = dict.fromkeys(itertools.chain(*_FURTHER), "")
    return {**further, **{name: _as_written(cell) for name, cell in row.items()}}


def _fits(name: str, cell: str) -> bool:
    """Return whether a cell is what stands in a column of numbers."""
    if not cell:
        return name not in _NEVER_BLANK
    if name in _WHOLE:
        return cell.isascii() and cell.isdigit() and len(cell) < 20
    try:
        return math.isnan(float(cell)) or abs(float(cell)) < _LARGEST
    except ValueError:
        return False
