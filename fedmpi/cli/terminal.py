"""What commands print on: the one way from a text to the terminal, how wide it may be, and JSON.

Names and reasons come from others (suites, plug-ins, records, file systems). What is printed here is shown as
it stands, by `fedmpi.visible`: rich's markup and what acts on a terminal have no effect.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from fedmpi.comm import launch
from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.tables.table import Table
from fedmpi.tables.terminal import OnTerminal
from fedmpi.visible import complain_of, visible

_UNLIMITED = 10_000
"""Columns where there is no terminal, as in a job's log: nothing is folded or left out."""


class Screen(Console):
    """A console on which a plain string is one line of text, not markup."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print strings as `visible` shows them, tables as they fit, other renderables as they are."""
        super().print(*map(_renderable, objects), **options)


def _renderable(part: Any) -> Any:
    if isinstance(part, Table):
        return OnTerminal(part)
    return plain(part) if isinstance(part, str) else part


def console(stream: TextIO) -> Screen:
    """Return a console on `stream` as wide as what shows it.

    A launcher takes a rank's output through a pipe and prints it on the terminal
    that it was started from, so that terminal's width counts. Into a pipe or a file
    everything goes in full, unless COLUMNS says how wide.
    """
    width = None if stream.isatty() else _columns() or _launcher_width() or _UNLIMITED
    return Screen(file=stream, highlight=False, width=width)


def show(*parts: Any) -> int:
    """Print what belongs on the standard output; return the exit code 0."""
    screen = console(sys.stdout)
    for part in parts:
        screen.print(part)
    return 0


def left_out(complaints: Sequence[str]) -> int:
    """Name on the standard error what was left out; return the exit code, 2 if anything was."""
    complain_of(complaints)
    return 2 if complaints else 0


def plain(text: object, style: str = "") -> Text:
    """Return a text as one line, shown as it stands in a style of ours."""
    return Text(visible(text), style=style)


def say(text: object, stream: TextIO | None = None) -> None:
    """Print a line, on the standard output where no other stream is given."""
    target = stream or sys.stdout
    target.write(f"{visible(text)}\n")
    target.flush()


def counted(number: int, noun: str) -> str:
    """Return "1 case" or "3 cases"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def _columns() -> int | None:
    """Return the width that the environment asks for."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) or None if asked.isdecimal() and len(asked) < 6 else None


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


def write(target: Path, text: str, option: str = "") -> None:
    """Write a file whole.

    Raises
    ------
    BadInput
        It cannot be written; the option that named it comes first.
    """
    try:
        disk.write_whole(target, text)
    except OSError as error:
        raise BadInput(f"{option}{target}: cannot write it ({error.strerror})") from error


def refuse_no_file(target: Path, option: str = "") -> None:
    """Refuse before a long computation what `write` could not write after it; leave no trace.

    Raises
    ------
    BadInput
        The target is a folder, or in a place where no file can be made; the option that named it comes first.
    """
    try:
        if target.is_dir():
            raise BadInput(f"{option}{target}: a folder, where a file is to be written")
        disk.try_writing(target.parent)
    except OSError as error:
        raise BadInput(f"{option}{target}: cannot write it ({error.filename}: {error.strerror})") from error


def print_json(value: Any) -> int:
    """Print a value as JSON, NaN and infinities as null; return the exit code 0."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    sys.stdout.write(json.dumps(finite, indent=2) + "\n")
    return 0
