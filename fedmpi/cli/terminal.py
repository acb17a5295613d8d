"""What commands print on: how wide it may be, and JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fedmpi.comm import launch

_LOG_WIDTH = 200
"""Columns where there is no terminal, as in a job's log: nothing is folded."""
_UNLIMITED = 10_000


class _Screen(Console):
    """A console that says nothing more once its reader has gone away, as with ``fedmpi run ... | head``."""

    def on_broken_pipe(self) -> None:
        """Go on in silence: a run is not lost with whoever watched it."""
        self.quiet = True
        with suppress(OSError, ValueError), open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), self.file.fileno())


def console(stream: TextIO) -> Console:
    """Return a console on `stream` as wide as what shows it.

    A launcher takes a rank's output through a pipe and prints it on the terminal
    that it was started from, so that terminal's width counts.
    """
    width = None if stream.isatty() else _launcher_width() or _LOG_WIDTH
    return _Screen(file=stream, highlight=False, width=width)


def _launcher_width() -> int | None:
    """Return the width of the terminal that the nearest ancestor without a piped output writes to (Linux)."""
    if launch.expected_size() is None:
        return None
    with suppress(OSError, ValueError):
        process = os.getppid()
        while process > 1:
            output = os.readlink(f"/proc/{process}/fd/1")
            if output.startswith("/dev/pts/"):
                return _width(output)
            if not output.startswith(("pipe:", "socket:", "/dev/null")):
                return None
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def _width(terminal: str) -> int | None:
    descriptor = os.open(terminal, os.O_RDONLY | os.O_NOCTTY)
    try:
        return os.get_terminal_size(descriptor).columns or None
    finally:
        os.close(descriptor)


class PlainTable(Table):
    """A table without rules that shows text as it stands: names may hold what rich takes for markup.

    Parameters
    ----------
    title : str
    spare : sequence of str
        Headings of the columns that a narrow terminal does without, in this order.
    """

    def __init__(self, title: str, spare: Sequence[str] = ()) -> None:
        super().__init__(title=escape(title), title_justify="left", box=box.SIMPLE, pad_edge=False)
        self.caption_justify = "left"
        self._spare = spare

    def add_line(self, *cells: str) -> None:
        """Add a row."""
        self.add_row(*map(Text, cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render what fits; the caption says how much does not."""
        wide = options.update(width=_UNLIMITED)
        kept, spare = self, list(self._spare)
        while spare and Measurement.get(console, wide, kept).maximum > options.max_width:
            kept = kept._without(spare.pop(0))
        left_out = len(self.columns) - len(kept.columns)
        note = f"{left_out} column{'s do' if left_out > 1 else ' does'} not fit; a wider terminal shows more"
        lines = [line for line in (self.caption, note if left_out else "") if line]
        kept.caption = Text("\n".join(map(str, lines))) if lines else None
        return super(PlainTable, kept).__rich_console__(console, options)

    def _without(self, heading: str) -> PlainTable:
        fewer = PlainTable("")
        fewer.title = self.title
        columns = [column for column in self.columns if column.header != heading]
        for column in columns:
            fewer.add_column(column.header, justify=column.justify)
        for row in zip(*(column.cells for column in columns), strict=True):
            fewer.add_row(*row)
        return fewer


def plain_table(title: str, headings: Sequence[str], left: int, spare: Sequence[str] = ()) -> PlainTable:
    """Return an empty table; its first `left` columns are text, the others numbers."""
    table = PlainTable(title, spare)
    for column, heading in enumerate(headings):
        table.add_column(heading, justify="left" if column < left else "right")
    return table


def print_json(value: Any) -> None:
    """Print a value as JSON; NaN and infinities, which JSON cannot say, become null."""
    print(json.dumps(_without_nan(value), indent=2, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
