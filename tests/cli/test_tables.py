"""Which columns of runs and clients stay on a terminal of a width, rendered in process."""

import io

import pytest
from rich.console import Console

from fedmpi.analysis.columns import client_columns, run_columns, task_columns
from fedmpi.metrics.metric import ACCURACY, MAE, RMSE
from fedmpi.tables.table import Table
from fedmpi.tables.terminal import OnTerminal

RUN = {
    "case": "seed10-PROTEINS-fedavg",
    "dataset": "PROTEINS",
    "algorithm": "gcfl-plus",
    "objective": "supervised",
    "seed": 10,
    "status": "complete",
    "rounds": 200,
    "rounds_planned": 200,
    "ranks": [2],
    "metric": "accuracy",
    "constant": float("nan"),
    "test_accuracy": 0.7012,
    "test_accuracy_best_by_validation": 0.7113,
    "test_accuracy_as_published": 0.7414,
    "test_accuracy_without_twins": 0.6915,
    "worst_client_accuracy": 0.5516,
    "lowest_decile_accuracy": 0.5617,
    "round_seconds_median": 0.0451,
    "total_seconds": 12.3,
    "model_gflop": 1234.56,
    "client_megabytes": 456.78,
    "client_megabytes_up": 228.39,
    "virtual_seconds": 99.9,
}
NAMES = ["seed10-PROTEINS-fedavg", "PROTEINS", "gcfl-plus", "10"]
CLIENT = RUN | {"client": "PROTEINS-0", "train_loss": 0.5, "val_accuracy": 0.72}


def shown(columns, row, metrics, width):
    """Return a table's line of its only row, and what stands below."""
    screen = Console(width=width, file=io.StringIO())
    screen.print(OnTerminal(Table(columns([row], metrics), [row])))
    lines = [line.rstrip() for line in screen.file.getvalue().splitlines()]
    assert all(len(line) <= width for line in lines)
    rule = next(place for place, line in enumerate(lines) if line.startswith("──"))
    return lines[rule + 1].split(), " ".join(lines[rule + 2 :])


COSTS = "s/round median, total s, model GFLOP, client MB, MB up, virtual s;"
TASK = {"task": "solubility", "test_rmse": 1.5, "val_rmse": 2.0, "test_mae": 1.0, "val_mae": 1.25}
VALUES = ["1.5000", "2.0000", "1.0000", "1.2500"]


@pytest.mark.parametrize(
    ("columns", "row", "metrics", "width", "cells", "below"),
    [
        (run_columns, RUN, [ACCURACY], 50, ["seed10…fedavg", *NAMES[1:], "70.12"], "Left out: "),
        (run_columns, RUN, [ACCURACY], 80, [*NAMES, "70.12", "71.13"], "Left out: status, rounds, ranks, as "
         f"published, without twins, worst client, lowest decile, {COSTS} a wider terminal"),
        (run_columns, RUN, [ACCURACY], 120, [*NAMES, "complete", "200/200", "70.12", "71.13", "74.14", "55.16",
         "56.17"], f"Left out: ranks, without twins, {COSTS}"),
        (client_columns, CLIENT, [ACCURACY], 40, ["PROTEINS-0", "72.00", "70.12"], ""),
        (client_columns, CLIENT, [ACCURACY], 20, ["PROTEINS-0", "70.12"], ""),
        (task_columns, TASK, [RMSE, MAE], 20, ["solubility", VALUES[0]], ""),
        (task_columns, TASK, [RMSE, MAE], 80, ["solubility", *VALUES], ""),
    ],
)  # fmt: skip
def test_a_narrow_terminal_keeps_the_headline(columns, row, metrics, width, cells, below):
    kept, left_out = shown(columns, row, metrics, width)
    assert kept == cells
    assert left_out.startswith(below)


def test_200_columns_keep_everything():
    cells, below = shown(run_columns, RUN, [ACCURACY], 200)
    assert (cells[-6:], below) == (["0.045", "12.3", "1,234.56", "456.78", "228.39", "99.9"], "")
