"""What every command owes its user, whatever it was given."""

from __future__ import annotations

import re
import signal
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from tests.fuzz.server import HUNG, Ended

_WARNING = re.compile(r"^\S*:\d+: \w*Warning:|^\w+Warning:")
_BROKEN = ("Cc", "Zl", "Zp")
"""Unicode categories that break a line or steer a terminal."""


@dataclass(frozen=True)
class Failure:
    """A bad end: its kind, and the input that shows it."""

    kind: str
    example: str


def flaw(ended: Ended, codes: Collection[int] = (0, 2), lines: int = 1) -> str:
    """Return what kind of failure a command's end is, or nothing.

    It must end with one of `codes`, without traceback or warning, saying on standard error
    at most `lines` lines that begin with the program's name, exactly that where it refuses, and
    nowhere a control character.
    """
    if found := _crash(ended):
        return found
    said = [line for line in ended.err.split("\n") if line]
    if ended.code not in codes:
        return f"exit code {ended.code}: {_outline(said[-1] if said else 'nothing said')}"
    if warnings := [line for line in said if _WARNING.search(line)]:
        return f"a warning of Python's: {_outline(warnings[0])}"
    if any(unicodedata.category(letter) in _BROKEN for line in said for letter in line):
        return f"a control character on standard error{_begin(said)}"
    if any(unicodedata.category(letter) in _BROKEN for letter in ended.out.replace("\n", "")):
        return "a control character on standard output"
    if ended.code == 2 and not 1 <= len(said) <= lines:
        return f"{len(said)} lines on standard error{_begin(said)}"
    if ended.code == 2 and not all(line.startswith(("fedmpi: ", "Page: ")) for line in said):
        return f"a line that is not fedmpi's: {_outline(said[0])}"
    return ""


def _crash(ended: Ended) -> str:
    """Return how a command ended that did not end by itself."""
    if HUNG in ended.err or ended.code in (-signal.SIGALRM, -signal.SIGXCPU):
        return "does not end"
    if ended.code < 0:
        return signal.Signals(-ended.code).name
    if "Traceback (most recent call last)" in ended.err:
        return f"traceback: {_outline(ended.err.rstrip().rpartition(chr(10))[2])}"
    return ""


def _begin(lines: list[str]) -> str:
    return f": {_outline(lines[0])}" if lines else ""


def _outline(line: str) -> str:
    """Return a line without what changes from input to input, so that equal failures count as one."""
    quoted = re.sub(r"'[^']*'|\"[^\"]*\"|\d[\d.e+-]*|/\S+", "#", line)
    return "".join(letter if letter.isprintable() else "?" for letter in quoted)[:80]
