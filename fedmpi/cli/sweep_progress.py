"""What a person sees of a sweep: a line per case that ended and, on a terminal, bars of those that run."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from fedmpi.cli.plan import Planned
from fedmpi.cli.terminal import console, plain


class SweepProgress:
    """Lines; within the context, on a terminal, bars below them: rounds of running cases, and all cases."""

    def __init__(self, total: int, done: int) -> None:
        self._console = console(sys.stdout)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._cases = self._bars.add_task("cases", total=total, completed=done)
        self._running: dict[int, TaskID] = {}

    def __enter__(self) -> SweepProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text)

    def passed(self, item: Planned, rounds: int) -> None:
        """Show how many rounds a running case has finished."""
        case = item.checked.case
        if item.number not in self._running:
            self._running[item.number] = self._bars.add_task(str(plain(case.name)), total=case.rounds)
        self._bars.update(self._running[item.number], completed=rounds)

    def ended(self, item: Planned, done: int) -> None:
        """Take a case's bar away."""
        if item.number in self._running:
            self._bars.remove_task(self._running.pop(item.number))
        self._bars.update(self._cases, completed=done)
