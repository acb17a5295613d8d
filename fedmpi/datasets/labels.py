"""Labels of one's own data: whether these are classes, yes or no, or numbers, said by the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.config.documents import short
from fedmpi.datasets.raw import Int, LabelKind
from fedmpi.errors import BadInput
from fedmpi.visible import visible

Float = npt.NDArray[np.float64]

KINDS: dict[str, LabelKind] = {
    "classification": "classification",
    "multi-label": "multi-task",
    "regression": "regression",
}
"""What may be said of labels, where the values alone mislead."""


_MOST_CLASSES = 100
"""More whole numbers may well be measurements: which, has to be said."""

_LARGEST_CLASS = 2**53 - 1
"""Whole numbers beyond it may be one in float64."""

_GAPS = ("nan", "na", "n/a", "null")
"""What a cell without a label says, in any case of its letters, where it is not empty."""


@dataclass(frozen=True)
class Labels:
    """Labels of n examples, some of them missing.

    Attributes
    ----------
    kind : str
        See `RawGraphs.task`.
    values : float64 [n, T]
        NaN where one is missing; of classes their numbers, T = 1.
    names : tuple of str
        Of the classes, or of the T columns.
    """

    kind: LabelKind
    values: Float
    names: tuple[str, ...]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Whether each example has a label, bool [n]."""
        return np.asarray(~np.isnan(self.values).all(axis=1))

    def taken(self, kept: Int) -> npt.NDArray[Any]:
        """Return labels of some examples, as `RawGraphs.labels` has them."""
        values = self.values[kept]
        return values[:, 0].astype(np.int64) if self.kind == "classification" else values


def of_numbers(values: Float, columns: Sequence[str], asked: str, where: str) -> Labels:
    """Return labels that are numbers.

    One column of whole numbers are classes, several columns of 0 and 1 are labels that each hold or not,
    anything else are numbers to predict.

    Parameters
    ----------
    values : float64 [n, T]
        NaN where one is missing.
    columns : sequence of str
        Name of each column.
    asked : str
        A key of `KINDS` that says what they are, or empty.
    where : str
        For messages.

    Raises
    ------
    BadInput
        A value is infinite, none is there, they are not what was asked for, or may be classes or not.
    """
    found = values[~np.isnan(values)]
    if not len(found):
        raise BadInput(f"{where}: no label is there")
    if not np.isfinite(found).all():
        raise BadInput(f"{where}: a label is infinite")
    one = values.shape[1] == 1
    able = {
        "classification": one and bool((found % 1 == 0).all()),
        "multi-label": bool(np.isin(found, (0, 1)).all()),
        "regression": True,
    }
    if asked and not able[asked]:
        needs = "one column of whole numbers or text" if asked == "classification" else "0, 1 and gaps"
        raise BadInput(f"{where}: task={asked} needs {needs}")
    kind = KINDS[asked or next(each for each in able if able[each])]
    if kind != "classification":
        return Labels(kind, values, tuple(columns))
    if np.abs(found).max() > _LARGEST_CLASS:
        raise BadInput(f"{where}: classes are at most {_LARGEST_CLASS}, or text")
    classes, numbers = np.unique(values, return_inverse=True)
    names = tuple(str(int(value)) for value in classes if not np.isnan(value))
    if len(names) > _MOST_CLASSES and not asked:
        said = f"say task=regression behind the path, as in ./{Path(where).name}?task=regression"
        raise BadInput(f"{where}: {len(names)} whole numbers: {said}, or task=classification")
    places = np.where(np.isnan(values), np.nan, numbers.reshape(values.shape))
    return Labels(kind, places, names)


def of_cells(rows: Sequence[Sequence[str]], columns: Sequence[str], asked: str, where: str) -> Labels:
    """Return the labels that cells of text state: numbers, or the classes of one column.

    Parameters
    ----------
    rows : sequence of sequences of str
        A row of cells for each example; an empty one, ``nan`` and so on are gaps.
    columns, asked, where
        See `of_numbers`.

    Raises
    ------
    BadInput
        As `of_numbers`; or a cell is no number where others, or other columns, are.
    """
    texts = [[_label(cell) for cell in row] for row in rows]
    values = np.full((len(rows), len(columns)), np.nan)
    wrong = ""
    for number, cells in enumerate(texts):
        for place, text in enumerate(cells):
            try:
                values[number, place] = float(text or "nan")
            except ValueError:
                wrong = wrong or f"row {number + 1}, column '{columns[place]}': '{text}'"
    if not wrong:
        return of_numbers(values, columns, asked, where)
    if len(columns) > 1 or np.any(np.nan_to_num(values) % 1):
        raise BadInput(f"{where}: {wrong} is no number, as others are: leave a gap empty")
    return of_texts([text for (text,) in texts], asked, where)


def of_lines(lines: Sequence[str], asked: str, path: Path, where: str) -> Labels:
    """Return the labels of a text: one in each line, or several between commas.

    Raises
    ------
    BadInput
        As `of_cells`; or lines, which are those of the path, have several lengths.
    """
    width = next((line.count(",") + 1 for line in lines if line), 1)
    rows = [line.split(",") if line else [""] * width for line in lines]
    if any(len(row) != width for row in rows):
        raise BadInput(f"{path}: its rows do not all have {width} label{'s' * (width > 1)}")
    columns = ["label"] if width == 1 else [f"label{column + 1}" for column in range(width)]
    return of_cells(rows, columns, asked, where)


def _label(cell: str) -> str:
    """Return what a cell says, nothing where it says that it is a gap."""
    text = cell.strip()
    return "" if text.lower() in _GAPS else text


def of_texts(texts: Sequence[str], asked: str, where: str) -> Labels:
    """Return the classes that a column of text states, in the order of the text; empty ones are missing.

    Raises
    ------
    BadInput
        Something else than classes was asked for.
    """
    if asked not in ("", "classification"):
        raise BadInput(f"{where}: task={asked} needs numbers")
    numbers, names = numbered(texts, where)
    return Labels("classification", np.where(numbers < 0, np.nan, numbers)[:, None].astype(np.float64), names)


def numbered(texts: Sequence[str], where: str) -> tuple[Int, tuple[str, ...]]:
    """Return the number of each text among the different ones, -1 for an empty one, and these.

    Whole numbers come in their order, other text in the order of the alphabet.

    Raises
    ------
    BadInput
        A text cannot be printed.
    """
    names = sorted({text for text in texts if text})
    if wrong := [text for text in names if not text.isprintable()]:
        raise BadInput(f"{where}: '{short(visible(wrong[0]))}' cannot be a name: use printable characters")
    if all(text.isascii() and text.isdigit() for text in names):
        names.sort(key=lambda text: (len(text.lstrip("0")), text.lstrip("0"), text))
    place = {text: number for number, text in enumerate(names)} | {"": -1}
    return np.array([place[text] for text in texts], np.int64), tuple(names)
