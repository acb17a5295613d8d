"""``fedmpi select``: the winners of a sweep by validation, and the suite that runs them again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from fedmpi.analysis.discovery import each_run, folder_of
from fedmpi.analysis.winners import Winner, as_suite, winners
from fedmpi.cli.run import Places
from fedmpi.cli.terminal import console
from fedmpi.errors import BadInput


def select(
    target: Path, by: Sequence[str], seeds: Sequence[int], write: Path | None, rerun: bool, places: Places,
    workers: int, ranks: int,
) -> int:  # fmt: skip
    """Print the winners; write the suite of them, and run it, where asked.

    Returns
    -------
    int
        0, 2 if a run could not be read, or what the sweep of the winners returns.
    """
    complaints: list[str] = []
    found = winners(each_run([target], complaints), by)
    for line in complaints:
        print(f"fedmpi: {line}", file=sys.stderr)
    console(sys.stdout).print(_table(found, by))
    name = f"{_name(target)}-winners"
    suite = write or (Path(f"{name.replace('/', '-')}.toml") if rerun else None)
    if suite is not None:
        try:
            suite.write_text(as_suite(found, name, seeds))
        except OSError as error:
            raise BadInput(f"{suite}: cannot write there ({error.strerror})") from error
        print(f"wrote {suite}; fedmpi sweep {suite} runs it")
    if rerun and suite is not None:
        from fedmpi.cli.sweep import sweep

        return sweep(str(suite), [], places, workers, ranks, None, [])
    return 2 if complaints else 0


def seed_list(text: str) -> list[int]:
    """Return the seeds of ``1,2,3``.

    Raises
    ------
    BadInput
        Something else than whole numbers.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise BadInput(f"--seeds {text}: give whole numbers with commas, such as 1,2,3") from error


def _name(target: Path) -> str:
    """Return the name of the suite whose runs these are."""
    for run in each_run([folder_of(target)], []):
        return str(run.config["suite"])
    raise BadInput(f"{target}: no runs to select from")


def _table(found: Sequence[Winner], by: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in (*by, "tried", "score", "val", "test", "best test\nof any", "settings"):
        numeric = heading in ("tried", "val", "test", "best test\nof any")
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for each in found:
        scores = (each.val, each.test, each.test_maximum)
        numbers = [f"{score:.4f}" for score in scores]
        table.add_row(*each.group, str(each.candidates), each.score, *numbers, each.options)
    return table
