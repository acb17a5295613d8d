"""Text of others, made safe to show: names and reasons come from suites, plug-ins, records, file systems."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def visible(text: object) -> str:
    r"""Return a text as one line in which nothing acts on a terminal.

    Control characters, escape sequences, line breaks, marks that change the direction of reading, and
    whatever else Unicode does not count as printable are written as Python writes them: ``\x1b``, ``\n``,
    ``\u202e``.
    """
    given = str(text)
    if given.isprintable():
        return given
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in given)


def visible_lines(text: object) -> str:
    """Return a text of several lines, each as `visible` shows it."""
    return "\n".join(map(visible, str(text).split("\n")))


def complain(text: object) -> None:
    """Print a line of trouble on the standard error."""
    sys.stderr.write(f"fedmpi: {visible(text)}\n")


def complain_of(lines: Iterable[object]) -> None:
    """Print lines of trouble on the standard error: the first `MOST_LINES`, and how many there are more."""
    whole = list(lines)
    for line in whole[:MOST_LINES]:
        complain(line)
    if len(whole) > MOST_LINES:
        complain(f"and {len(whole) - MOST_LINES} more of such lines")


MOST_LINES = 20
