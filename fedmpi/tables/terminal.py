"""A table without rules that fits the terminal: what matters stays, a line below names what does not."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from fedmpi.tables.table import Table
from fedmpi.visible import visible

_GAP = 2
"""Blanks between two columns."""
_LEAST_NAME = 9
"""Letters that a name keeps however narrow the terminal is."""
_LEAST_TEXT = 24
"""Columns that wrapped text keeps."""
_ELLIPSIS = "…"


@dataclass(frozen=True)
class _Column:
    """A heading and its cells: text stands left, numbers right, and some text may take several lines."""

    heading: str
    meaning: str
    spare: int
    is_text: bool
    wrapped: bool
    cells: Sequence[str]

    @property
    def longest_word(self) -> int:
        """Width of the heading's longest word, which is never broken."""
        return max(map(cell_len, self.heading.split()), default=0)

    @property
    def content(self) -> int:
        """Width of the widest cell, or of the heading's longest word where that is more."""
        return max([self.longest_word, *map(cell_len, self.cells)])

    @property
    def least(self) -> int:
        """Width with which the column is to be reckoned."""
        return min(self.content, _LEAST_TEXT) if self.wrapped else self.content

    @property
    def floor(self) -> int:
        """Width that it keeps where nothing else helps: names are shortened."""
        return max(_LEAST_NAME, self.longest_word) if self.is_text and not self.wrapped else self.least

    def broken_heading(self, width: int) -> list[str]:
        """Return the heading in lines of about `width`, broken between words only."""
        return textwrap.wrap(self.heading, width, break_long_words=False, break_on_hyphens=False) or [""]

    def block(self, row: int, width: int) -> list[str]:
        """Return the lines of a cell: text is wrapped, a name shortened."""
        if self.wrapped:
            return textwrap.wrap(self.cells[row], width, break_on_hyphens=False) or [""]
        return [shortened(self.cells[row], width)]


class OnTerminal:
    """What rich prints of a table: text as it stands, though it may look like markup or act on a terminal."""

    def __init__(self, table: Table[Any]) -> None:
        self._table = table
        self._columns = _columns(table)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the columns that fit, and name those that do not."""
        kept = self._fitting(options.max_width)
        yield Text(visible(self._table.title), style="italic")
        lines = self._lines(kept, options.max_width, "-" if options.ascii_only else "─")
        yield Text("\n".join(lines), overflow="fold")
        meanings = "; ".join(f"{column.heading}: {column.meaning}" for column in kept if column.meaning)
        notes = [*self._table.notes, *([f"{meanings}."] if meanings else [])]
        shown = set(map(id, kept))
        left_out = dict.fromkeys(column.heading for column in self._columns if id(column) not in shown)
        if left_out:
            notes.append(f"Left out: {', '.join(left_out)}; {self._table.hint}.")
        yield from (Text(visible(note), style="dim") for note in notes)
        yield Text("")

    def _fitting(self, width: int) -> list[_Column]:
        """Return the columns without as many of the spare ones as have no room, the least important first."""
        kept = list(self._columns)
        spare = [column for column in kept if column.spare]
        for column in sorted(spare, key=lambda column: -column.spare):
            if sum(each.least for each in kept) + _GAP * (len(kept) - 1) <= width:
                break
            kept = [each for each in kept if each.heading != column.heading]
        return kept

    def _lines(self, kept: Sequence[_Column], width: int, rule: str) -> list[str]:
        """Return headings, rule and rows."""
        widths = _final_widths(kept, width)
        ruler = rule * (sum(widths) + _GAP * (len(widths) - 1))
        headings = [column.broken_heading(each) for column, each in zip(kept, widths, strict=True)]
        deepest = max(map(len, headings))
        lines = _beside(kept, [[""] * (deepest - len(each)) + each for each in headings], widths)
        lines.append(ruler)
        for row in range(len(self._table.rows)):
            lines += [ruler] if row in self._table.ruled else []
            blocks = [column.block(row, each) for column, each in zip(kept, widths, strict=True)]
            lines += _beside(kept, blocks, widths)
        return lines


def _columns(table: Table[Any]) -> list[_Column]:
    """Return the columns, spare as they say; where none says so, numbers but the first from the right on."""
    spares = [column.spare for column in table.columns]
    if not any(spares):
        further = [place for place, is_number in enumerate(table.numeric) if is_number][1:]
        spares = [place * (place in further) for place in range(len(spares))]
    return [
        _Column(
            visible(column.heading),
            column.meaning,
            spares[place],
            not table.numeric[place],
            column.wrapped,
            [visible(row[place].text) for row in table.entries],
        )
        for place, column in enumerate(table.columns)
    ]


def _beside(columns: Sequence[_Column], blocks: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of cells that stand beside each other."""
    lines = []
    for cells in zip_longest(*blocks, fillvalue=""):
        aligned = []
        for column, cell, width in zip(columns, cells, widths, strict=True):
            blank = " " * (width - cell_len(cell))
            aligned.append(cell + blank if column.is_text else blank + cell)
        lines.append((" " * _GAP).join(aligned).rstrip())
    return lines


def _final_widths(kept: Sequence[_Column], room: int) -> list[int]:
    """Return how wide each column is: the widest names are shortened, text takes what is left."""
    found = [column.least for column in kept]
    floors = [column.floor for column in kept]
    room -= _GAP * (len(kept) - 1)
    while sum(found) > room:
        above = [(width, place) for place, width in enumerate(found) if width > floors[place]]
        if not above:
            break
        found[max(above)[1]] -= 1
    for place, column in enumerate(kept):
        if column.wrapped:
            found[place] += max(0, min(column.content - found[place], room - sum(found)))
    return found


def shortened(name: str, width: int) -> str:
    """Return a name in at most `width` columns, its middle left out where it is longer."""
    if cell_len(name) <= width:
        return name
    end = (width - 1) // 2
    begin = chop_cells(name, width - 1 - end)[0]
    return f"{begin}{_ELLIPSIS}{chop_cells(name[::-1], end)[0][::-1]}"
