"""``fedmpi paper system``: FedGraphNN's Tables 6, 7 and 8 on this machine."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.discovery import each_run
from fedmpi.cli.options import SweepOptions
from fedmpi.cli.terminal import say, show
from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.reproduction.system import PUBLISHED_ROUNDS, SLEEP_S, SystemRow, system_rows
from fedmpi.tables.table import Column, Table, fields

_NOTES = (
    f"Published seconds are FedAvg's on 8 GPUs; of Table 6 over {PUBLISHED_ROUNDS} rounds (not stated).",
    f"The released server sleeps {SLEEP_S} s per client and round: 'less sleeps' is at most that much",
    "work, 'ours + sleeps' what our rounds would take with it. FLOP as published leaves out products",
    "with bare parameters; both counts are of one forward pass of an average graph.",
)


def system(
    options: SweepOptions,
    runs: Annotated[str, typer.Argument(help="Suite, or folder of finished runs.")] = "fedgraphnn/table6",
) -> int:
    """Print FedGraphNN's Tables 6 to 8 for this machine: seconds, FLOPs, parameters, and cost of its sleeps.

    Suites: fedgraphnn/table6, table7, table8. What is missing of a suite is run first; a folder's runs
    are printed as they are.

    Returns
    -------
    int
        What `fedmpi sweep` returns.

    Examples
    --------
    fedmpi paper system fedgraphnn/table6
    """
    code, folder = 0, Path(runs)
    if not folder.is_dir():
        from fedmpi.cli.sweep import sweep

        code = sweep(runs, options)
        folder = options.out or locations.find(runs)
    found = system_rows(each_run([folder], []))
    if not found:
        raise BadInput(f"{runs}: no complete run of a cell of FedGraphNN's Tables 6 to 8")
    for name, rows in grouped(found, lambda row: row.table).items():
        show(Table(_COLUMNS, rows, f"{name} of FedGraphNN on this machine"))
    for line in _NOTES:
        say(line)
    for line in dict.fromkeys(_slip(row) for row in found if row.slip):
        say(line)
    return code


def _slip(row: SystemRow) -> str:
    printed, why = row.slip or ("", "")
    return f"* {row.table} prints {printed} for {row.dataset} {row.model}: {why}."


def _published_flops(row: SystemRow) -> str | None:
    """Return the published count, or in place of none what the paper prints; marked where they differ."""
    if row.slip is None:
        return _thousands(row.published_flops)
    return f"{row.slip[0] if row.published_flops is None else _thousands(row.published_flops)}*"


def _thousands(value: int | None) -> str | None:
    return None if value is None else f"{value / 1e3:,.1f}K"


_COLUMNS: tuple[Column[SystemRow], ...] = (
    *fields("dataset", "algorithm", "model", "ranks"),
    Column("s/round", attrgetter("round_s"), format=".3f"),
    Column("step ms", attrgetter("train_step_ms"), format=".2f"),
    Column("published s/round", attrgetter("published_s"), format=".3f"),
    Column("less sleeps", attrgetter("without_sleeps_s"), format=".3f"),
    Column("ours + sleeps", attrgetter("with_sleeps_s"), format=".3f"),
    *fields("parameters", form=","),
    Column("FLOP as published", _published_flops, numeric=True),
    Column("FLOP", lambda row: _thousands(row.flops), numeric=True),
)
