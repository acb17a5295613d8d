"""``fedmpi leaderboard page``: the page of tracks from stored rows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.leaderboard import row_files
from fedmpi.analysis.leaderboard import track as tracks
from fedmpi.analysis.leaderboard.board import board
from fedmpi.analysis.leaderboard.page import earlier_pages, pages
from fedmpi.cli.leaderboard import ROWS, TRACKS, suite_of
from fedmpi.cli.terminal import say, write
from fedmpi.errors import BadInput

_PAGE = Path("docs/leaderboard.md")


def page(
    rows: Annotated[list[Path] | None, typer.Argument()] = None,
    track: list[str] | None = None,
    document: Path = _PAGE,
) -> int:
    """Write the pages of tracks from stored rows: findings, leads, ranks, costs and scores.

    Parameters
    ----------
    rows
        Files of rows; default results/reference/leaderboard/TRACK.csv of each track.
    track
        Track to show, as run takes it; may be repeated; default all of fedmpi's own, graphs and nodes on a
        page of earlier tracks beside the document.
    document
        The page; its pictures go into images beside it.

    Examples
    --------
    fedmpi leaderboard page

    fedmpi leaderboard page --track mine.toml --document mine.md
    """
    found = [tracks.track(suite_of(name)) for name in dict.fromkeys(track or TRACKS)]
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise BadInput(
            f"--track: two tracks of the name {max(names, key=names.count)}; a page has one of them"
        )
    if track and document == _PAGE:
        raise BadInput(f"--document: {_PAGE} is for fedmpi's own tracks; name another page")
    stored = [ROWS / f"{name}.csv" for name in names]
    listed = row_files.read(*(rows or (path for path in stored if path.exists() or track)))
    if not listed:
        where = ", ".join(map(str, rows or stored))
        run_first = f"fedmpi leaderboard run {shlex.quote((track or TRACKS)[0])}"
        raise BadInput(f"no rows in {where}: start it in fedmpi's checkout, or first run {run_first}")
    if stray := sorted({row.track for row in listed} - set(names)):
        raise BadInput(f"rows of {', '.join(stray)}, which --track does not name (shown: {', '.join(names)})")
    for each in found:
        strange = {row.data for row in listed if row.track == each.name} - set(each.federations)
        if strange:
            raise BadInput(f"rows of {', '.join(sorted(strange))}: {each.suite.name} has no such federation")
    places = rows or stored
    known = [each for path in places for each in row_files.read_constants(row_files.constants_beside(path))]
    boards = []
    for each in found:
        lines = [row for row in listed if row.track == each.name]
        boards.append(board(each, lines, [one for one in known if one.track == each.name]))
    earlier = [each for each in boards if each.track.earlier and not track]
    written = pages([each for each in boards if track or not each.track.earlier], document.name)
    for path, text in (written | (earlier_pages(earlier, document.name) if earlier else {})).items():
        write(document.parent / path, text)
        say(f"wrote {document.parent / path}")
    return 0
