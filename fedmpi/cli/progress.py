"""What a person sees of a run: header, partition, rounds, the table at the end (rank 0 only)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import Any, TextIO

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedmpi.analysis.summary import method
from fedmpi.case.schema import Case
from fedmpi.cli.round_line import round_line
from fedmpi.cli.terminal import console, counted, plain
from fedmpi.metrics.metric import Metric
from fedmpi.partition.table import COLUMNS, PartitionTable
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.run_folder import Opening
from fedmpi.tables.table import Column, Table

_FIRST_NUMBER = 2
"""Place of the first column of a partition that is no name."""
_MOST_ROWS = 40
"""Clients of a partition that are printed; the record holds all."""


class Console:
    """A live bar on a terminal, one line per round elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._rich = console(stream)
        self._progress: Progress | None = None
        self._partition: list[tuple[str, ...]] = []
        self._rounds = 0
        self._metrics: tuple[Metric, ...] = ()

    def begin(
        self,
        case: Case,
        metrics: tuple[Metric, ...],
        table: PartitionTable,
        opening: Opening,
        facts: dict[str, Any],
    ) -> None:
        """Say what runs where, and print the partition. See `Observer.begin`."""
        ranks, self._metrics = facts["mpi"]["size"], metrics
        text = (
            f": {method(case.config())} on {case.dataset.name}, "
            f"{counted(len(table.clients), 'client')} on {counted(ranks, 'rank')}, {case.rounds} rounds, "
            f"{_parameters(max(facts['parameters']), facts['shared_parameters'] * facts['communicates'])}"
        )
        self._rich.print(Text.assemble(plain(f"{case.suite}/{case.name}", "bold"), plain(text)))
        if opening.first_round or opening.from_checkpoint:
            self._rich.print(f"continued after round {opening.first_round}")
        elif opening.recorded:
            again = f"its {opening.recorded} recorded rounds are run again"
            self._rich.print(f"begun anew, because there is no checkpoint: {again}")
        if table.rows() != self._partition:  # cases often share one
            self._partition = table.rows()
            self._rich.print(_partition(table))
            if table.edges is not None and table.edges[1]:
                every, between = table.edges
                self._rich.print(plain(f"{between:,} of {every:,} edges are between clients: dropped"))
        self._rounds = case.rounds
        if self._rich.is_terminal:
            self._progress = Progress(
                TextColumn("round"),
                MofNCompleteColumn(),
                BarColumn(bar_width=12),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=self._rich,
                transient=True,
            )
            self._progress.start()
            self._progress.add_task("", total=case.rounds, completed=opening.first_round)

    def round(self, report: RoundReport) -> None:
        """Show a finished round."""
        line, short = round_line(self._metrics, report, self._rounds)
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=report.round + 1, description=short)
            if report.round + 1 == self._rounds:
                self.close()
        if self._progress is None:
            # Not through rich, which takes a millisecond of a core that clients train on.
            self._rich.file.write(f"{line}\n")
            self._rich.file.flush()

    def note(self, text: str) -> None:
        """Show a line."""
        self._rich.print(text)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def finish(self, folders: Sequence[Path]) -> None:
        """Print the table of the cases, where the records are, and what to try next."""
        from fedmpi.cli.report import report
        from fedmpi.store.reader import load_run

        self.close()
        report(list(folders), None, False)
        parent = folders[0].parent if len(folders) > 1 else folders[0]
        self.note(f"Records: {parent}{'/*' if len(folders) > 1 else ''}/run.h5")
        first = load_run(folders[0]).headline
        more = "--target 0.7" if first.scope == "client" and first.bounded else "--html page.html"
        self.note(f"Next: fedmpi report {quote(str(parent))} {more}; fedmpi --help")


def _partition(table: PartitionTable) -> Table[tuple[str, ...]]:
    """Return the partition with the columns that tell something: not those in which all clients are alike."""
    rows = table.rows()
    values = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    dull = {name for name in ("dataset", "missing", "stratified") if len(set(values[name])) == 1}
    if values["dataset"] == values["client"]:
        dull.add("dataset")
    columns = [
        Column[tuple[str, ...]](name, itemgetter(place), numeric=place >= _FIRST_NUMBER)
        for place, name in enumerate(COLUMNS)
        if name not in dull
    ]
    title = f"Partition: {counted(len(table.clients), 'client')}, EMD {table.total_emd:.4f}"
    more = [f"and {len(rows) - _MOST_ROWS} more clients"] if len(rows) > _MOST_ROWS else []
    return Table(columns, rows[:_MOST_ROWS], title, more)


def _parameters(of_model: int, shared: int) -> str:
    """Return how many parameters a model has, and how many numbers it shares, running statistics too."""
    statistics = " with running statistics" if shared > of_model else ""
    return f"{of_model} parameters ({shared} shared{statistics})"
