"""Limits on what is read from files of others: the size of a known dataset, or a fixed bound."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from fedmpi.datasets.tables import DatasetFacts
from fedmpi.errors import BadInput

MOST_DOWNLOAD_BYTES = 1 << 30
MOST_TEXT_BYTES = 1 << 31
"""Of a TU dataset that is not known; the largest known one, COLLAB, has 0.36 GB."""

_NUMBER_BYTES = 32
"""Text of one number and what is around it; 2 to 9 bytes in the known datasets."""

_COLUMNS = 8
"""Numbers of a node beside its attributes: graph, and columns of labels."""

_ROW_BYTES = 1 << 14
"""Text of a molecule with its labels; 1.6 kB in ToxCast, which has most labels."""

_LITTLE_BYTES = 1 << 16


def most_text(facts: DatasetFacts | None) -> int:
    """Return the bytes that the files of a TU dataset may have together once unpacked.

    Every edge may stand twice, as may its reverse.
    """
    if facts is None:
        return MOST_TEXT_BYTES
    numbers = 4 * facts.directed_edges + facts.nodes * (_COLUMNS + facts.attribute_width) + facts.graphs
    return _NUMBER_BYTES * numbers + _LITTLE_BYTES


def most_table(rows: int) -> int:
    """Return the bytes that a table of so many molecules may have once unpacked."""
    return _ROW_BYTES * rows + _LITTLE_BYTES


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Turn whatever the content of a damaged file raises where it is read into one line.

    Raises
    ------
    BadInput
    """
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{path} is cut short or damaged: {reason}; get it anew") from error


class Bounded(io.RawIOBase):
    """Reads a stream, but no more than so many bytes.

    Raises
    ------
    BadInput
        When it holds more.
    """

    def __init__(self, stream: Any, most: int, where: str) -> None:
        self._stream, self._left, self._most, self._where = stream, most, most, where

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into the buffer; return how many bytes."""
        content = self._stream.read(min(len(buffer), self._left + 1))
        if len(content) > self._left:
            raise BadInput(too_large(self._where, self._most))
        self._left -= len(content)
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def read_bytes(path: Path, most: int) -> Iterator[io.BufferedReader]:
    """Open a file, plain or gzip, of at most so many bytes once unpacked; what is damaged is one line."""
    with undamaged(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        yield io.BufferedReader(Bounded(stream, most, str(path)))


@contextmanager
def read_text(path: Path, most: int) -> Iterator[TextIO]:
    """Open text likewise."""
    with read_bytes(path, most) as stream:
        yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")


def read_lines(path: Path, most: int, at_least: int = 0) -> list[str]:
    """Return the lines of text likewise; of empty ones at its end so many stay as there are to be lines."""
    with read_text(path, most) as text:
        lines = [line.strip() for line in text.read().removesuffix("\n").split("\n")]
    while len(lines) > at_least and not lines[-1]:
        lines.pop()
    return lines


def too_large(where: str, most: int) -> str:
    """Return the message for what holds more than so many bytes."""
    return f"{where} holds more than {most:,} bytes, which no such file has: it is not read"
