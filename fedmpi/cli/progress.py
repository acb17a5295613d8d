"""What a person sees of a run, on rank 0, and of a sweep: header, partition, rounds, the table at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import numpy.typing as npt
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedmpi.analysis.summary import method
from fedmpi.cli.terminal import console, counted, plain
from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric
from fedmpi.partition.table import COLUMNS, PartitionTable
from fedmpi.tables.table import Column, Table

if TYPE_CHECKING:
    from fedmpi.case.schema import Case
    from fedmpi.cli.plan import Planned
    from fedmpi.runs.reporting import RoundReport
    from fedmpi.runs.run_folder import Opening
    from fedmpi.store.events import Round

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
        of_model, shared = max(facts["parameters"]), facts["shared_parameters"] * facts["communicates"]
        statistics = " with running statistics" if shared > of_model else ""
        text = (
            f": {method(case.config())} on {case.dataset.name}, "
            f"{counted(len(table.clients), 'client')} on {counted(ranks, 'rank')}, {case.rounds} rounds, "
            f"{of_model} parameters ({shared} shared{statistics})"
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
            rounds = TextColumn("round"), MofNCompleteColumn(), BarColumn(bar_width=12), TimeRemainingColumn()
            description = TextColumn("{task.description}")
            self._progress = Progress(*rounds, description, console=self._rich, transient=True)
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


def round_line(
    metrics: Sequence[Metric], found: Round | RoundReport, planned: int, more: str = ""
) -> tuple[str, str]:
    """Return a round in a line, and its headline as short as a progress bar needs it.

    Parameters
    ----------
    metrics : sequence of Metric
        The headline first. In the line stand those that are taken as the headline is: of the same scope.
    found : Round or RoundReport
    planned : int
        Rounds of the whole run.
    more : str
        What stands before the seconds.
    """
    results, headline = found.results, metrics[0]
    shown = [
        f"{each.label(part)} {_mean(results[each.field(part)])}"
        for each in ([headline] if headline.held_out else metrics)
        for part in each.parts
    ]
    width, seconds = len(str(planned)), float(found.measurements["round_seconds"])
    text = "  ".join([f"train loss {_mean(results['train_loss'])}", *shown])
    line = f"round {found.round + 1:{width}d}/{planned}  {text}  {more}{seconds:.3f} s"
    return line, "  ".join(shown[: len(headline.parts)])


def _mean(values: npt.NDArray[Any]) -> str:
    return f"{clients.mean(np.atleast_1d(values)):.4f}"


class SweepProgress(Progress):
    """Bars on a terminal: rounds of running cases, and all cases."""

    def __init__(self, total: int, done: int) -> None:
        screen = console(sys.stdout)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn()
        super().__init__(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self._cases = self.add_task("cases", total=total, completed=done)
        self._running: dict[int, TaskID] = {}

    def passed(self, item: Planned, rounds: int) -> None:
        """Show how many rounds a running case has finished."""
        case = item.checked.case
        if item.number not in self._running:
            self._running[item.number] = self.add_task(str(plain(case.name)), total=case.rounds)
        self.update(self._running[item.number], completed=rounds)

    def ended(self, item: Planned, done: int) -> None:
        """Take a case's bar away."""
        if item.number in self._running:
            self.remove_task(self._running.pop(item.number))
        self.update(self._cases, completed=done)
