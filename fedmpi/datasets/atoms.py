"""Atom features of FedGraphNN (He et al. 2021): eight numbers, and Table 5's 128 one-hot columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float32]

ATOM_COLUMNS = (
    "atomic number",
    "formal charge",
    "bonds",
    "chiral tag",
    "hydrogens",
    "mass / 100",
    "aromatic",
    "hybridisation",
)
"""The rows of Table 5 as one number each: features ``scalar8``.

With input width 8 all parameter counts of Table 6 come out, with Table 5's 128 none does. Bonds are
those to heavy atoms, hydrogens the implicit and explicit ones, the chiral tag and the hybridisation
(place in `HYBRIDISATIONS`, from 1; 0 for others) numbers of a category.
"""

HYBRIDISATIONS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")

_ONE_HOT = ((0, 1, 100), (1, -2, 5), (2, 0, 6), (3, 0, 5), (4, 0, 5))
"""Column of `ATOM_COLUMNS`, its first value and the number of values, up to the mass; then two plain ones."""

ONE_HOT_WIDTH = sum(size for _, _, size in _ONE_HOT) + 2 + len(HYBRIDISATIONS)


def one_hot_atoms(scalars: Float) -> Float:
    """Return atoms [n, 8] as Table 5 prints them, [n, 128]; a value out of range has no column.

    Atomic numbers 1 to 100, charges -2 to 2, bonds 0 to 5, chiral tags 0 to 4, hydrogens 0 to 4, the
    mass divided by 100, the aromatic flag, and five hybridisations.
    """
    parts = [_one_hot(scalars[:, column], first, size) for column, first, size in _ONE_HOT]
    return np.concatenate([*parts, scalars[:, 5:7], _one_hot(scalars[:, 7], 1, len(HYBRIDISATIONS))], axis=1)


def _one_hot(values: Float, first: int, size: int) -> Float:
    found: Float = (values[:, None] == np.arange(first, first + size)).astype(np.float32)
    return found


def divided_by_sum(rows: Float) -> Float:
    """Return each row divided by its sum, as the published GCN's input; rows of sum 0 become 0."""
    sums = rows.sum(axis=1, keepdims=True, dtype=np.float64)
    shares: Float = np.divide(rows, sums, out=np.zeros(rows.shape), where=sums != 0).astype(np.float32)
    return shares


def standardised_by_graph(rows: Float, graph_ptr: npt.NDArray[np.int64]) -> Float:
    """Return every column centred and scaled within each graph, as the published GAT's and GraphSAGE's input.

    The standard deviation is that of the graph's nodes (ddof 0); a column that is constant in a graph is 0.
    """
    values = rows.astype(np.float64)
    sizes = np.diff(graph_ptr)[:, None]
    mean = np.add.reduceat(values, graph_ptr[:-1]) / sizes
    graph = np.repeat(np.arange(len(sizes)), sizes[:, 0])
    centred = values - mean[graph]
    spread = np.sqrt(np.add.reduceat(np.square(centred), graph_ptr[:-1]) / sizes)
    highest, lowest = (ufunc.reduceat(values, graph_ptr[:-1]) for ufunc in (np.maximum, np.minimum))
    spread[highest == lowest] = np.inf  # of a constant column rounding may leave a little
    return (centred / spread[graph]).astype(np.float32)
