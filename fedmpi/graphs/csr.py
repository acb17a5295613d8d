"""Sparse matrices by rows, as the compiled products take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.jit import compiled
from fedmpi.graphs.packed import Int, pointers

Short = npt.NDArray[np.int32]
Float = npt.NDArray[np.float32]
Entries = tuple[Short, Short, Float]


@dataclass(frozen=True)
class Csr:
    """A sparse matrix by rows.

    Attributes
    ----------
    pointers : int32 [n + 1]
    columns : int32 [E]
    weights : float32 [E]
    width : int
        Number of columns.
    """

    pointers: Short
    columns: Short
    weights: Float
    width: int

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.pointers) - 1

    @property
    def num_entries(self) -> int:
        """Number of stored entries."""
        return len(self.columns)

    @property
    def entries(self) -> Entries:
        """Pointers, columns and weights, as compiled passes take a matrix."""
        return self.pointers, self.columns, self.weights

    @cached_property
    def transposed(self) -> Csr:
        """The transpose; entries of a row in ascending order of column."""
        return Csr(*transposed_entries(self.pointers, self.columns, self.weights, self.width), self.num_rows)

    def take(self, rows: Int) -> Csr:
        """Return the given rows, in order."""
        return self.take_blocks(rows, np.zeros(len(rows), np.int64), self.width)

    def compacted(self) -> tuple[Csr, Int, Short]:
        """Return the matrix without its empty columns, those that stay, and each column's new number."""
        place, used = used_columns(self.columns, self.width)
        return Csr(self.pointers, place[self.columns], self.weights, len(used)), used, place

    def take_blocks(self, rows: Int, shifts: Int, width: int) -> Csr:
        """Return the given rows, in order, the columns of each moved by its shift."""
        return Csr(*taken_rows(self.pointers, self.columns, self.weights, rows, shifts), width)


def counted(rows: Int, columns: Int, num_rows: int, width: int) -> Csr:
    """Return the matrix whose entry is how often a pair (row, column) occurs.

    Parameters
    ----------
    rows, columns : int64 [n]
        The pairs.
    num_rows, width : int
        Shape of the matrix.
    """
    pairs, counts = np.unique(rows * np.int64(width) + columns, return_counts=True)
    lengths = np.bincount(pairs // width, minlength=num_rows)
    return Csr(
        pointers(lengths).astype(np.int32), (pairs % width).astype(np.int32), counts.astype(np.float32), width
    )


@compiled
def used_columns(columns: Short, width: int) -> tuple[Short, Int]:
    """Return the new number of each column, of any that does not occur 0, and those that occur, ascending."""
    place, count = np.zeros(width, np.int32), 0
    for column in columns:
        count += 1 - place[column]
        place[column] = 1
    used, number = np.empty(count, np.int64), 0
    for column in range(width):
        if place[column]:
            used[number], place[column] = column, number
            number += 1
    return place, used


@compiled
def taken_members(member_ptr: Short, members: Short, rows: Int, shifts: Int) -> tuple[Short, Short]:
    """Return the members of the given classes, in order, those of each moved by its shift."""
    starts = np.zeros(len(rows) + 1, np.int32)
    for i in range(len(rows)):
        starts[i + 1] = starts[i] + member_ptr[rows[i] + 1] - member_ptr[rows[i]]
    taken = np.empty(starts[-1], np.int32)
    for i in range(len(rows)):
        for e in range(starts[i + 1] - starts[i]):
            taken[starts[i] + e] = members[member_ptr[rows[i]] + e] + shifts[i]
    return starts, taken


@compiled
def taken_rows(
    row_pointers: Short, columns: Short, weights: Float, rows: Int, shifts: Int
) -> tuple[Short, Short, Float]:
    """Return the given rows of a matrix, in order, the columns of each moved by its shift."""
    starts = np.zeros(len(rows) + 1, np.int32)
    for i in range(len(rows)):
        starts[i + 1] = starts[i] + row_pointers[rows[i] + 1] - row_pointers[rows[i]]
    taken, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    for i in range(len(rows)):
        source, shift = row_pointers[rows[i]], shifts[i]
        for e in range(starts[i + 1] - starts[i]):
            taken[starts[i] + e] = columns[source + e] + shift
            values[starts[i] + e] = weights[source + e]
    return starts, taken, values


@compiled
def transposed_entries(
    row_pointers: Short, columns: Short, weights: Float, width: int
) -> tuple[Short, Short, Float]:
    """Return the transpose of a matrix of so many columns; entries of a row in ascending order of column."""
    starts = np.zeros(width + 1, np.int32)
    for column in columns:
        starts[column + 1] += 1
    for column in range(width):
        starts[column + 1] += starts[column]
    place = starts[:-1].copy()
    rows, values = np.empty(len(columns), np.int32), np.empty(len(columns), np.float32)
    for row in range(len(row_pointers) - 1):
        for e in range(row_pointers[row], row_pointers[row + 1]):
            at = place[columns[e]]
            rows[at], values[at] = row, weights[e]
            place[columns[e]] = at + 1
    return starts, rows, values
