"""Runs as CSV: one row per run and client, from which committed tables are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.analysis import scores
from fedmpi.analysis.options import option_text
from fedmpi.analysis.summary import AGREEMENT, per_client, setting, summarise
from fedmpi.config.documents import load_csv, short
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run
from fedmpi.tables.csv import csv_of

COLUMNS = (
    *("suite", "case", "dataset", "algorithm", "rounds", "options", "split_seed", "seed", "client"),
    *("train_graphs", "test_graphs"),
    *("metric", "score", "score_best_by_validation", "score_as_published", "constant_score"),
    *("test_graphs_without_twins", "score_without_twins"),
    *("score_without_twins_best_by_validation", "score_without_twins_as_published"),
    *("test_loss", "parameters", "shared_parameters", "train_cpu_seconds", "train_wall_seconds"),
    *("run_wall_seconds", "model_gflop", "run_executed_gflop", "client_megabytes"),
    *("commit", "numerics_version", "config_digest"),
)
"""Columns in file order; `metric` names the run's headline, whose values the scores are, see docs/metrics.md.
Examples of nodes and edges are counted as graphs are.
What begins with ``run_`` is of the whole run and stands in each of its rows. Behind stand, in columns of
their own names, `run_ranks`, figures that not every record has, further metrics, means over clients, and
`domain_agreement`."""

_WHERE_RECORDED = (
    *("joules", "virtual_clock", "utilisation", "mean_staleness", "wasted_gflop"),
    *("spectral_gap", "consensus_distance"),
)
"""Figures of a whole run that not every record has; NaN and 0 are left out."""

ALL = "all clients"
"""Client of the one row of a run whose headline is over all clients' held-out examples."""

RULES = {rule: f"score{suffix}" for rule, suffix in scores.RULES.items()}
"""Columns of the score by selection rule; only the last rule looks at test data to choose."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""What makes a spreadsheet read text as a formula; the apostrophe so that `read` gives back the text."""

_TEXTS = ("suite", "case", "dataset", "algorithm", "options", "client", "commit", "config_digest", "metric")

_WHOLE = ("rounds", "split_seed", "seed")
"""Whole numbers. The other columns that are no text hold any number."""

_NEVER_BLANK = (*_WHOLE, "run_wall_seconds", "metric", "score")

_LARGEST = 1e39
"""Above what float32 holds, in which losses and scores are; sums and squares of it are still numbers."""


def client_rows(run: Run) -> list[dict[str, Any]]:
    """Return a complete run's rows in client order; one row where the headline is of all clients together.

    Raises
    ------
    BadInput
        The run is not complete: an unfinished run has no last round.
    """
    if run.status != "complete":
        raise BadInput(f"{run.folder}: {run.status}, not complete; finish it first or leave it out")
    if "sizes" not in run.partition:
        raise BadInput(f"{run.folder}: its record does not say how many examples each client has")
    whole = summarise(run)
    parameters = run.attempts[-1].provenance.get("parameters", [""] * len(run.clients))
    columns = {
        **{f"{part}_graphs": _examples(run, part, place) for part, place in (("train", 0), ("test", 2))},
        **{
            f"train_{kind}_seconds": np.nansum(run.measured(f"client_{kind}_seconds"), axis=0)
            for kind in ("cpu", "wall")
        },
    }
    common, found = _common(run, whole), per_client(run)
    if "test_twin_own" in run.partition:
        columns["test_graphs_without_twins"] = scores.num_without_twins(run)
    if run.headline.scope == "pooled":
        found, parameters = [{"client": ALL}], [max(parameters)]
        columns = {name: values.sum(keepdims=True) for name, values in columns.items()}
    return [
        {
            **_figures(run, whole | row),
            **common,
            **{name: round(values[place].item(), 3) for name, values in columns.items()},
            "parameters": parameters[place],
        }
        for place, row in enumerate(found)
    ]


def _examples(run: Run, part: str, place: int) -> Any:
    """Return the clients' examples of a part; ego-networks, which have several, count by them."""
    pointers = run.partition.get(f"{part}_ptr")
    return run.partition["sizes"][:, place] if pointers is None else np.diff(pointers)


def _figures(run: Run, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns made of a run's figures, where a client has its own of the client's."""
    field = run.headline.field()
    names = [f"{kind}{suffix}" for kind in ("", "_without_twins") for suffix in scores.RULES.values()]
    return {
        **{name: figures[name] for name in COLUMNS if name in figures},
        **{f"score{name}": figures[f"{field}{name}"] for name in names if f"{field}{name}" in figures},
        **scores.further(run),
        **scores.trust(run),
        "constant_score": "" if math.isnan(figures["constant"]) else figures["constant"],
    }


def _common(run: Run, whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that are the same for all clients of a run."""
    provenance, ranks = run.attempts[-1].provenance, set(whole["ranks"])
    columns = {
        "suite": run.config["suite"],
        "case": run.config["name"],
        "dataset": setting(run.config, "dataset"),
        "algorithm": setting(run.config, "algorithm"),
        "rounds": run.rounds,
        "options": option_text(run.config),
        "split_seed": run.config["partition"]["seed"],
        "seed": run.config["seed"],
        "shared_parameters": provenance.get("shared_parameters", ""),
        "run_wall_seconds": round(whole["total_seconds"], 3),
        "run_executed_gflop": whole["executed_gflop"],
        "commit": provenance.get("source", {}).get("commit", ""),
        "numerics_version": run.numerics_version,
        "config_digest": run.config_digest,
        "run_ranks": ranks.pop() if len(ranks) == 1 else "",  # unless they changed on the way
    }
    columns |= {f"run_{name}": whole[name] for name in _WHERE_RECORDED if whole.get(name, 0.0) > 0.0}
    return columns | ({AGREEMENT: whole[AGREEMENT]} if AGREEMENT in whole else {})


def text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows under `COLUMNS`, and what further columns one has; floats in full: nothing is lost."""
    listed = list(rows)
    further = dict.fromkeys(name for row in listed for name in row if name not in COLUMNS)
    cells = ({name: _as_cell(name, value) for name, value in row.items()} for row in listed)
    return csv_of((*COLUMNS, *further), cells)


def as_read(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return rows as `read` returns what `write` made of them."""
    blank = dict.fromkeys(COLUMNS, "")
    texts = ({name: "" if value is None else str(value) for name, value in row.items()} for row in rows)
    return [blank | text for text in texts]


def _as_cell(name: str, value: Any) -> Any:
    """Return a cell; text that a spreadsheet would take for a formula begins with an apostrophe."""
    marked = name in _TEXTS and isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if marked else value


def _as_written(cell: str) -> str:
    """Return what `_as_cell` made a cell from."""
    marked = cell.startswith("'") and cell[1:].startswith(_FORMULA)
    return cell[1:] if marked else cell


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file that `write` made.

    Raises
    ------
    BadInput
        The file cannot be read, has other columns, or a row that is cut or has text in place of a number.
    """
    found = load_csv(path, partial(_refuse_other_columns, path))
    for line, row in found:
        for name, cell in row.items():
            if name not in _TEXTS and not _fits(name, cell):
                place = f"{path}, line {line}"
                raise BadInput(f"{place}: {name} = {short(cell)}; the file is damaged, make it again")
    return [{name: _as_written(cell) for name, cell in row.items()} for _, row in found]


def _refuse_other_columns(path: Path, names: tuple[str, ...]) -> None:
    whole = names[: len(COLUMNS)] == COLUMNS and len(set(names)) == len(names)
    if not whole or not all(name.isidentifier() for name in names[len(COLUMNS) :]):
        raise BadInput(f"{path}: not a file of `fedmpi report --csv`: its columns differ")


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
