"""Graphs as the compiled steps of a GIN without normalisation take them: all, or the numbers of some."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import Csr, Entries
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.graphs.refinement.quotient import Quotient, quotient
from fedmpi.kernels.gin_packing import Graphs
from fedmpi.kernels.gin_passes import Matrices


@dataclass
class GinBatch:
    """Graphs for training with dropout, packed only when a step takes them.

    Attributes
    ----------
    whole : Quotient
        All graphs.
    numbers : int64 [B] or None
        Of those of the batch; None: all.
    graphs : Graphs
        All graphs, as compiled steps take them.
    counts : list of int
        Sizes, which a step sets: see `gin_steps.COUNTS`.
    """

    whole: Quotient
    numbers: Int | None
    graphs: Graphs
    counts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, graphs: GraphSet) -> GinBatch:
        """Return all graphs as a batch."""
        whole = quotient(graphs)
        targets = graphs.labels.astype(np.float64)
        return cls(
            whole,
            None,
            Graphs(
                matrices=matrices(whole, transposed=False),
                sizes=np.diff(whole.graph_ptr),
                graph_ptr=_own(whole.graph_ptr, np.int64),
                node_ptr=_own(whole.node_ptr, np.int64),
                num_edges=_own(whole.num_edges, np.int64),
                targets=_own(targets if targets.ndim == 2 else targets[:, None], np.float64),
            ),
        )

    def take(self, numbers: Int) -> GinBatch:
        """Return some of all graphs."""
        return replace(self, numbers=numbers, counts=[])

    @cached_property
    def ready(self) -> Graphs:
        """All graphs with transposed matrices, which a step of all of them reads."""
        return self.graphs._replace(matrices=matrices(self.whole, transposed=True))

    @property
    def most_rows(self) -> int:
        """The most rows that a layer has."""
        if self.numbers is None:
            return max(self.whole.num_rows, self.whole.first.num_rows)
        return int(self.graphs.sizes[self.numbers].sum())

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of graphs, nodes and directed edges; after a step."""
        graphs, nodes, edges, *_ = self.counts
        return graphs, nodes, edges


def matrices(of: Quotient, *, transposed: bool) -> Matrices:
    """Return the matrices of graphs; those that are not transposed stand in the places of those that are."""
    first, closed, pooling = of.first, of.closed, of.pooling
    backs = [each.transposed if transposed else each for each in (first, closed, pooling)]
    found: list[Any] = [
        _own(of.inputs, np.float32),
        *(_entries(each) for each in (first, closed, pooling, *backs)),
        *(_own(each, np.int32) for each in (of.first_of, of.member_ptr, of.members)),
    ]
    return Matrices(*found)


def _entries(of: Csr) -> Entries:
    return _own(of.pointers, np.int32), _own(of.columns, np.int32), _own(of.weights, np.float32)


def _own(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of the one kind that steps are compiled for; a copy where it is of another."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "WRITEABLE"])
