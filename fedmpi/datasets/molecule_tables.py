"""Molecules of one's own: a table with a column of SMILES, and columns of labels, clients and parts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from fedmpi.datasets import labels as own_labels
from fedmpi.datasets import parquet
from fedmpi.datasets.bounds import read_text
from fedmpi.datasets.labels import Labels
from fedmpi.datasets.own import clients_of, parts_of, said_of, weights_of
from fedmpi.datasets.raw import Int, RawGraphs
from fedmpi.datasets.smiles import EVERY_OTHER, IDENTIFIERS, molecule, packed, require_rdkit
from fedmpi.errors import BadInput
from fedmpi.visible import visible

_MOST_BYTES = 1 << 28
"""Of a table once unpacked; the 93,087 molecules of MUV have 5 MB."""

SDF = (".sdf", ".sdf.gz")
"""Endings of the names of files with a block for each molecule."""

PARQUET = ".parquet"
"""Ending of the names of files that pyarrow reads."""

_END = "\nM  END\n"
"""Of a block."""

Row = Mapping[str, str]
Cells = dict[str, str]


@dataclass(frozen=True)
class Columns:
    """Columns of a table, as what stands behind its path says: ``./mine.csv?smiles=mol&label=toxic``.

    Attributes
    ----------
    smiles : str
    label : tuple of str
        One or several, or ``*`` for all that are nothing else.
    client, split, weight : str
        Read where they are there.
    task : str
        A key of `fedmpi.datasets.labels.KINDS`, or empty.
    """

    smiles: str = "smiles"
    label: tuple[str, ...] = ("label",)
    client: str = "client"
    split: str = "split"
    weight: str = "weight"
    task: str = ""


@dataclass(frozen=True)
class Table:
    """The n rows of a table, before RDKit sees them.

    Attributes
    ----------
    smiles : tuple of str
    labels : Labels
    flaws : tuple of str
        Why a row cannot be read, empty where nothing is wrong so far.
    clients : int64 [n] or None
    client_names : tuple of str
    parts : int8 [n] or None
        See `RawGraphs.parts`.
    weights : float32 [n] or None
        What each row counts in the training loss.
    """

    smiles: tuple[str, ...]
    labels: Labels
    flaws: tuple[str, ...]
    clients: Int | None
    client_names: tuple[str, ...]
    parts: npt.NDArray[np.int8] | None
    weights: npt.NDArray[np.float32] | None


def columns_of(name: str) -> Columns:
    """Return the columns that the name of a dataset states; see `fedmpi.datasets.own.said_of`."""
    said = said_of(name, [field.name for field in fields(Columns)])
    labels = tuple(dict.fromkeys(value for key, value in said if key == "label"))
    return Columns(**{**dict(said), "label": labels or Columns.label})  # type: ignore[arg-type]


def read_table(path: Path, columns: Columns) -> Table:
    """Read a table without RDKit.

    Raises
    ------
    BadInput
        It is damaged, a column is missing, a label is no number among numbers, a row has no client or an
        unknown part, or no row has a label.
    """
    columns, header, cells = _content(path, columns)
    if not cells:
        raise BadInput(f"{path} has no rows")
    flaws = ["more cells than the header" if None in row else "" for row in cells]
    used = _used(columns) & {*header}
    rows = [{name: row.get(name) or "" for name in used} for row in cells]
    cells_of_labels = [[row[name] for name in columns.label] for row in rows]
    labels = own_labels.of_cells(cells_of_labels, columns.label, columns.task, str(path))
    flaws = [flaw or ("" if there else "no label") for flaw, there in zip(flaws, labels.present, strict=True)]
    clients: Int | None = None
    client_names: tuple[str, ...] = ()
    parts = None
    if columns.client in header:
        texts = [row[columns.client] for row in rows]
        clients, client_names = clients_of(texts, f"{path}, column '{columns.client}'")
    if columns.split in header:
        parts = parts_of([row[columns.split] for row in rows], f"{path}, column '{columns.split}'")
    smiles = tuple(row[columns.smiles] for row in rows)
    weights = None
    if columns.weight in {*header} - {*columns.label}:
        texts = ["0" if flaw else row[columns.weight] for row, flaw in zip(rows, flaws, strict=True)]
        weights = weights_of(texts, f"{path}, column '{columns.weight}'")
    return Table(smiles, labels, tuple(flaws), clients, client_names, parts, weights)


def _used(columns: Columns) -> set[str]:
    """Return the names of the columns that may be read."""
    return {columns.smiles, *columns.label, columns.client, columns.split, columns.weight}


def _content(path: Path, columns: Columns) -> tuple[Columns, list[str], list[Cells]]:
    """Return the columns with every label by its name, the header, and the rows."""
    if path.suffix == PARQUET:
        header = parquet.columns_of(path)
        columns = _found(columns, header, path)
        used = _used(columns) & {*header}
        return columns, header, parquet.read_rows(path, sorted(used), _MOST_BYTES)
    with read_text(path, _MOST_BYTES) as text:
        header, cells = _records(text.read()) if is_sdf(path) else _rows(text)
    return _found(columns, header, path), header, cells


def is_sdf(path: Path) -> bool:
    """Return whether a file's molecules are blocks of an SDF file, in place of SMILES."""
    return path.name.endswith(SDF)


def _rows(text: TextIO) -> tuple[list[str], list[Cells]]:
    """Return the header and the rows of a table."""
    reader = csv.DictReader(text, strict=True)
    return list(reader.fieldnames or ()), list(reader)


def _records(text: str) -> tuple[list[str], list[Cells]]:
    """Return the names of the data and the records of an SDF file; their blocks are the column of SMILES."""
    records: list[Cells] = []
    for record in re.split(r"^\$\$\$\$.*\n?", text.replace("\r\n", "\n"), flags=re.MULTILINE):
        block, end, data = record.partition(_END)
        if record.strip():
            records.append({**_data_of(data.split("\n")), Columns.smiles: block + end})
    return list(dict.fromkeys(name for record in records for name in record)), records


def _data_of(lines: Sequence[str]) -> Cells:
    """Return the data of a record: a line with ``<NAME>``, then its value up to an empty line."""
    found: dict[str, list[str]] = {}
    value: list[str] = []
    for line in lines:
        if line.startswith(">") and "<" in line:
            value = found.setdefault(line[line.index("<") + 1 : line.rindex(">")], [])
        elif line:
            value.append(line)
        else:
            value = []
    return {name: "\n".join(each) for name, each in found.items()}


def read_molecules(path: Path, columns: Columns, name: str) -> RawGraphs:
    """Read the molecules of a table; see `fedmpi.datasets.smiles.read_molecules`.

    Raises
    ------
    BadInput
        As `read_table`; or no row holds a molecule with a label.
    """
    require_rdkit()
    table = read_table(path, columns)
    molecules, kept, refused = [], [], []
    for number, (text, flaw) in enumerate(zip(table.smiles, table.flaws, strict=True)):
        parsed = None if flaw else molecule(text, block=is_sdf(path))
        if parsed is None:
            refused.append(
                f"row {number + 1}: {flaw or 'no molecule'}: {visible(text.partition(chr(10))[0])}"
            )
        else:
            molecules.append(parsed)
            kept.append(number)
    if not molecules:
        raise BadInput(f"{path}: no row holds a molecule with a label")
    rows = np.array(kept)
    raw = packed(name, molecules, table.labels.taken(rows), table.labels.names, table.labels.kind)
    return replace(
        raw,
        refused=tuple(refused),
        clients=None if table.clients is None else table.clients[rows],
        client_names=table.client_names,
        parts=None if table.parts is None else table.parts[rows],
        weights=None if table.weights is None else table.weights[rows],
    )


def _found(columns: Columns, header: Sequence[str], path: Path) -> Columns:
    """Return the columns with every label by its name, all of which are in the header."""
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise BadInput(f"{path} has two columns '{twice}': rename one")
    if columns.label == EVERY_OTHER:
        others = (*_used(replace(columns, label=())), *IDENTIFIERS)
        columns = replace(columns, label=tuple(name for name in header if name not in others))
    for key, name in _named(columns):
        if name not in header:
            there = ", ".join(header) if header else "none"
            raise BadInput(
                f"{path} has no column '{name}' (there are: {there}): name it, as in ./{path.name}?{key}=NAME"
            )
    return columns


def _named(columns: Columns) -> Iterator[tuple[str, str]]:
    """Yield the columns that must be there, each with its key."""
    yield "smiles", columns.smiles
    yield from (("label", name) for name in columns.label)
    for key in ("client", "split", "weight"):
        if getattr(columns, key) != getattr(Columns, key):
            yield key, getattr(columns, key)
