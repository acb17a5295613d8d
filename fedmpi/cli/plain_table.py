"""Tables without rules that fit the terminal: what matters stays, and a line below names what does not."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Self

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from fedmpi.visible import visible

_GAP = 2
"""Blanks between two columns."""
_LEAST_NAME = 9
"""Letters that a name keeps however narrow the terminal is."""
_LEAST_TEXT = 24
"""Columns that wrapped text keeps."""
_ELLIPSIS = "…"
WIDER = "a wider terminal or `| less -S` shows them"


@dataclass
class _Column:
    """A heading and its cells: text stands left, numbers right, and some text may take several lines."""

    heading: str
    is_text: bool
    wrapped: bool = False
    cells: list[str] = field(default_factory=list)

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

    def broken_heading(self, width: int) -> list[str]:
        """Return the heading in lines of about `width`, broken between words only."""
        return textwrap.wrap(self.heading, width, break_long_words=False, break_on_hyphens=False) or [""]

    def block(self, row: int, width: int) -> list[str]:
        """Return the lines of a cell: text is wrapped, a name shortened."""
        if self.wrapped:
            return textwrap.wrap(self.cells[row], width, break_on_hyphens=False) or [""]
        return [shortened(self.cells[row], width)]


class PlainTable:
    """A table of text as it stands: names may hold what rich takes for markup, or what acts on a terminal.

    Parameters
    ----------
    title : str
    headings : sequence of str
    left : int
        How many of the first columns are text; the others are numbers.
    spare : sequence of str
        Headings of the columns that a narrow terminal does without, the least important first; by default
        all numbers but the first, from the last one on.
    wrapped : sequence of str
        Headings of the columns of text that may take several lines.
    hint : str
        How to see the columns that are left out.

    Attributes
    ----------
    caption : str
        Stands below the table.
    meanings : mapping of str to str
        What headings mean; stands below for those of the columns that are shown.
    """

    def __init__(
        self,
        title: str,
        headings: Sequence[str],
        left: int,
        spare: Sequence[str] = (),
        wrapped: Sequence[str] = (),
        hint: str = WIDER,
    ) -> None:
        self.title, self.caption = title, ""
        self.meanings: Mapping[str, str] = {}
        self._spare = spare or [heading for heading in headings[:left:-1] if heading not in wrapped]
        self._hint = hint
        self._columns = [
            _Column(visible(heading), place < left or heading in wrapped, heading in wrapped)
            for place, heading in enumerate(headings)
        ]
        self._sections: set[int] = set()

    @property
    def row_count(self) -> int:
        """Number of lines so far."""
        return len(self._columns[0].cells)

    def add_line(self, *cells: object) -> None:
        """Add a row."""
        for column, cell in zip(self._columns, cells, strict=True):
            column.cells.append(visible(cell))

    def with_lines(self, rows: Iterable[Iterable[object]]) -> Self:
        """Return the table with further rows."""
        for cells in rows:
            self.add_line(*cells)
        return self

    def add_section(self) -> None:
        """Draw a line below the last row."""
        self._sections.add(self.row_count - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the columns that fit, and name those that do not."""
        kept = self._fitting(options.max_width)
        yield Text(visible(self.title), style="italic")
        lines = self._lines(kept, options.max_width, "-" if options.ascii_only else "─")
        yield Text("\n".join(lines), overflow="fold")
        shown = {id(column) for column in kept}
        left_out = dict.fromkeys(column.heading for column in self._columns if id(column) not in shown)
        headings = [column.heading for column in kept if column.heading in self.meanings]
        meanings = "; ".join(f"{heading}: {self.meanings[heading]}" for heading in headings)
        notes = [each for each in (self.caption, meanings and f"{meanings}.") if each]
        if left_out:
            notes.append(f"Left out: {', '.join(left_out)}; {self._hint}.")
        yield from (Text(visible(note), style="dim") for note in notes)
        yield Text("")

    def _fitting(self, width: int) -> list[_Column]:
        kept = list(self._columns)
        for heading in self._spare:
            if _width(kept) <= width:
                break
            kept = [column for column in kept if column.heading != heading]
        return kept

    def _lines(self, kept: Sequence[_Column], width: int, rule: str) -> list[str]:
        """Return headings, rule and rows."""
        widths = _final_widths(kept, width)
        ruler = rule * (sum(widths) + _GAP * (len(widths) - 1))
        headings = [column.broken_heading(each) for column, each in zip(kept, widths, strict=True)]
        deepest = max(map(len, headings))
        lines = _beside(kept, [[""] * (deepest - len(each)) + each for each in headings], widths)
        lines.append(ruler)
        for row in range(self.row_count):
            blocks = [column.block(row, each) for column, each in zip(kept, widths, strict=True)]
            lines += _beside(kept, blocks, widths)
            lines += [ruler] if row in self._sections else []
        return lines


def _beside(columns: Sequence[_Column], blocks: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of cells that stand beside each other."""
    lines = []
    for cells in zip_longest(*blocks, fillvalue=""):
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
        aligned = (
            cell + blank if column.is_text else blank + cell
            for column, cell, blank in zip(columns, cells, blanks, strict=True)
        )
        lines.append((" " * _GAP).join(aligned).rstrip())
    return lines


def _final_widths(kept: Sequence[_Column], room: int) -> list[int]:
    """Return how wide each column is; names are shortened where nothing else helps."""
    floors = [
        max(_LEAST_NAME, column.longest_word) if column.is_text and not column.wrapped else column.least
        for column in kept
    ]
    found = _shortened([column.least for column in kept], floors, room)
    for place, column in enumerate(kept):
        left = room - sum(found) - _GAP * (len(found) - 1)
        if column.wrapped and left > 0:
            found[place] = min(column.content, found[place] + left)
    return found


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.least for column in columns) + _GAP * (len(columns) - 1)


def _shortened(widths: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """Return the widths, the widest that are above their floors less by what is missing of the room."""
    found = list(widths)
    while sum(found) + _GAP * (len(found) - 1) > room:
        width, place = max(
            ((each, place) for place, each in enumerate(found) if each > floors[place]), default=(0, 0)
        )
        if not width:
            break
        found[place] -= 1
    return found


def shortened(name: str, width: int) -> str:
    """Return a name in at most `width` columns, its middle left out where it is longer."""
    if cell_len(name) <= width:
        return name
    end = (width - 1) // 2
    begin = chop_cells(name, width - 1 - end)[0]
    return f"{begin}{_ELLIPSIS}{chop_cells(name[::-1], end)[0][::-1]}"
