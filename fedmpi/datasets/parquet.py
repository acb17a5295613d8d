"""Tables in Parquet files as rows of text, read by pyarrow (the extra ``parquet``)."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedmpi.datasets.bounds import too_large, undamaged
from fedmpi.errors import BadInput

_ROWS_AT_ONCE = 4096

_INDEX = re.compile(r"__index_level_\d+__")
"""Columns in which pandas keeps the index of a frame."""


def columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns.

    Raises
    ------
    BadInput
        pyarrow is missing, or the file is damaged.
    """
    with _opened(path) as file:
        return [name for name in file.schema_arrow.names if not _INDEX.fullmatch(name)]


def read_rows(path: Path, names: Sequence[str], most: int) -> list[dict[str, str]]:
    """Return the rows of some columns as text: numbers in Python's notation, yes as 1, gaps empty.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Columns that are there.
    most : int
        Bytes that these may have once unpacked.

    Raises
    ------
    BadInput
        As `columns_of`; a column holds neither text nor numbers, or there are more bytes.
    """
    rows: list[dict[str, str]] = []
    taken = 0
    with _opened(path) as file:
        for name in names:
            _refuse_other(file.schema_arrow.field(name).type, f"{path}, column '{name}'")
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(names), use_threads=False):
            taken += batch.nbytes
            if taken > most:
                raise BadInput(too_large(str(path), most))
            cells = [[_text(value) for value in batch.column(name).to_pylist()] for name in names]
            rows += [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
    return rows


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if importlib.util.find_spec("pyarrow") is None:
        raise BadInput(f"{path}: pyarrow, which reads it, is missing: pip install 'fedmpi[parquet]'")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    with undamaged(path), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield file


def _refuse_other(kind: Any, where: str) -> None:
    """Raise BadInput for a column that holds neither text nor numbers."""
    types: Any = importlib.import_module("pyarrow.types")
    if types.is_dictionary(kind):
        kind = kind.value_type
    able = (
        types.is_boolean, types.is_integer, types.is_floating, types.is_decimal,
        types.is_string, types.is_large_string, types.is_null,
    )  # fmt: skip
    if not any(is_kind(kind) for is_kind in able):
        raise BadInput(f"{where}: holds {kind}, neither text nor numbers")


def _text(value: Any) -> str:
    """Return a cell as a table of text has it."""
    if value is None:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return str(value)
