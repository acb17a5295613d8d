"""``fedmpi system``: FedGraphNN's Table 6 on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.discovery import each_run
from fedmpi.cli.options import SweepOptions
from fedmpi.cli.plain_table import PlainTable
from fedmpi.cli.run import plan_suite
from fedmpi.cli.terminal import console, say
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.kinds import load_plugins
from fedmpi.reproduction.system import PUBLISHED_ROUNDS, SLEEP_S, SystemRow, system_rows

_HEADINGS = (
    "dataset", "algorithm", "model", "ranks", "s/round", "step ms", "published s/round", "less sleeps",
    "ours + sleeps", "parameters", "FLOP as published", "FLOP",
)  # fmt: skip
_NOTES = (
    f"Published seconds are Table 6's, FedAvg's over {PUBLISHED_ROUNDS} rounds (not stated), on 8 GPUs.",
    f"The released server sleeps {SLEEP_S} s per client and round: 'less sleeps' is at most that much",
    "work, 'ours + sleeps' what our rounds would take with it. FLOP as published leaves out products",
    "with bare parameters.",
)


def system(
    options: SweepOptions,
    runs: Annotated[str, typer.Argument(help="Suite, or folder of finished runs.")] = "fedgraphnn/table6",
) -> int:
    """Print FedGraphNN's Table 6 for this machine: seconds, FLOPs, parameters, and what its sleeps cost.

    What is missing of a suite is run first; a folder's runs are printed as they are.

    Returns
    -------
    int
        What `fedmpi sweep` returns.
    """
    code, folder = 0, Path(runs)
    if not folder.is_dir():
        from fedmpi.cli.sweep import run_missing

        path = locations.find(runs)
        load_plugins(options.plugins)
        suite = read(path, options.overrides)
        plan = plan_suite(suite, options.out, resume=True)
        code = run_missing(plan, path, options)
        folder = options.out or locations.RUNS / suite.name
    found = system_rows(each_run([folder], []))
    if not found:
        raise BadInput(f"{runs}: no complete run of a fedgraphnn/ model")
    table = PlainTable("Table 6 of FedGraphNN on this machine", _HEADINGS, left=3)
    console(sys.stdout).print(table.with_lines(map(_cells, found)))
    for line in _NOTES:
        say(line)
    for line in dict.fromkeys(_slip(row) for row in found if row.slip):
        say(line)
    return code


def _slip(row: SystemRow) -> str:
    printed, counted, why = row.slip or ("", "", "")
    return (
        f"* Table 6 prints {printed} for {row.dataset} {row.model}, counted its way it is {counted} ({why})."
    )


def _cells(row: SystemRow) -> tuple[str, ...]:
    def seconds(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    def thousands(value: int | None) -> str:
        return "-" if value is None else f"{value / 1e3:,.1f}K"

    return (
        *(row.dataset, row.algorithm, row.model, str(row.ranks), seconds(row.round_s)),
        f"{row.train_step_ms:.2f}",
        *map(seconds, (row.published_s, row.without_sleeps_s, row.with_sleeps_s)),
        f"{row.parameters:,}",
        thousands(row.published_flops) + ("*" if row.slip else ""),
        thousands(row.flops),
    )
