"""Tables of numbers in text files, read in blocks: fast, and in little more memory than the result."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput

_BLOCK_BYTES = 1 << 24
_COMMA_TO_SPACE = bytes.maketrans(b",", b" ")


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the stream in large pieces that end at line ends, without a byte-order mark."""
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    while block := stream.read(_BLOCK_BYTES):
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += tail
    if rest:
        yield rest


def _parse(text: bytes, dtype: type[np.generic], where: str) -> npt.NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns of text that is no number
        try:
            values = np.fromstring(text.translate(_COMMA_TO_SPACE), dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError) as error:
            kind = "whole numbers" if issubclass(dtype, np.integer) else "numbers"
            raise BadInput(f"{where}: holds something else than {kind} between commas") from error
    if issubclass(dtype, np.integer) and len(values):
        ends = np.iinfo(dtype)
        if values.max() == ends.max or values.min() == ends.min:
            raise BadInput(f"{where}: holds a number beyond 64 bits")
    return values


def read_table(stream: IO[bytes], dtype: type[np.generic], where: str) -> npt.NDArray[Any]:
    """Return the stream's rows of comma-separated numbers.

    Parameters
    ----------
    stream : binary file
        Read to its end.
    dtype : type
        ``np.int64`` or ``np.float64``.
    where : str
        Name of the file for messages.

    Returns
    -------
    array [rows, columns] of `dtype`
        ``[0, 0]`` for an empty file. Blank lines are passed over.

    Raises
    ------
    BadInput
        Text that is no number, or rows of unequal length.
    """
    pieces, columns, commas, lines = [], 0, 0, 0
    for block in _blocks(stream):
        text = block.strip()
        if not text:
            continue
        columns = columns or text.split(b"\n", 1)[0].count(b",") + 1
        commas += text.count(b",")
        lines += text.count(b"\n") + 1
        pieces.append(_parse(text, dtype, where))
    if not pieces:
        return np.zeros((0, 0), dtype)
    values = np.concatenate(pieces)
    rows = commas // (columns - 1) if columns > 1 else len(values)
    if commas != rows * (columns - 1) or len(values) != rows * columns or rows > lines:
        raise BadInput(f"{where}: its rows do not all have {columns} numbers")
    return values.reshape(rows, columns)


def finite(table: npt.NDArray[Any], num_rows: int, where: str, other: str) -> npt.NDArray[np.float32] | None:
    """Return a table of attributes, None for an empty file.

    Raises
    ------
    BadInput
        It has not so many rows, which `refuse_other_length` says, or one is not finite in 32 bits.
    """
    if table.size == 0:
        return None
    refuse_other_length(table, num_rows, where, other)
    with np.errstate(over="ignore"):
        attributes = table.astype(np.float32)
    if not np.isfinite(attributes).all():
        row = int(np.flatnonzero(~np.isfinite(attributes).all(axis=1))[0])
        raise BadInput(f"{where}: row {row + 1} is not finite in 32 bits")
    return attributes


def refuse_other_length(table: npt.NDArray[Any], num_rows: int, where: str, other: str) -> None:
    """Raise BadInput unless a table has so many rows; ``other`` names in ``{}`` what has these."""
    if len(table) != num_rows:
        raise BadInput(f"{where}: has {len(table)} rows, but {other.format(num_rows)}")
