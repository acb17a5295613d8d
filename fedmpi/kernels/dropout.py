"""Dropout on rows that each represent several equal nodes; every node has its own mask."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints
from fedmpi.graphs.refinement.quotient import Quotient
from fedmpi.graphs.streams import Drop, Words
from fedmpi.kernels import dropout_loops as kernels
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import reading

Counts = npt.NDArray[np.unsignedinteger]


class FastDropout:
    """The masks of `DropoutStreams`, counted over the nodes of each row.

    Parameters
    ----------
    hidden : int
        Columns without padding.
    drop : float
    scratch : Scratch

    Attributes
    ----------
    how : Drop
    """

    def __init__(self, hidden: int, drop: float, scratch: Scratch) -> None:
        self._hidden, self._scratch = hidden, scratch
        self.how = Drop(*reading(drop), np.float32(1.0 / (1.0 - drop)))

    def apply(
        self,
        number: int,
        streams: Words,
        rows: Floats,
        row_of: Ints,
        batch: Quotient,
        name: str = "dropped",
    ) -> tuple[Floats, Counts]:
        """Return rows after dropout, summed over each row's nodes, and how many keep an element, [Q, width].

        Parameters
        ----------
        number : int
            Of the dropout layer.
        streams : uint64 [layers]
            Keys of all layers.
        rows : float32 [n, width]
        row_of : int32 [Q]
            Row of each class.
        batch : Quotient
            Nodes of each class; most of one decide the width of the integers.
        name : str, optional
            Of the scratch array.
        """
        shape = len(row_of), rows.shape[1]
        out = self._scratch(name, *shape)
        kept = self._scratch(f"kept {number}", *shape, np.uint8 if batch.largest_class < 256 else np.uint16)
        kernels.drop(
            streams, number, self.how, batch.member_ptr, batch.members, self._hidden, rows, row_of, kept, out
        )
        return out, kept  # type: ignore[return-value]

    def back(self, matrix: Csr, upstream: Floats, rows: Floats, row_of: Ints, kept: Counts) -> Floats:
        """Return the gradient of rows [n, width] before ReLU and dropout.

        Parameters
        ----------
        matrix : Csr
            The transposed matrix [Q, p] of what follows.
        upstream : float32 [p, width]
        rows, row_of
            As `apply` had them.
        kept : unsigned integer [Q, width]
            What `apply` returned.
        """
        gradient = self._scratch("out gradient", *rows.shape)
        kernels.dropout_backward(*matrix.entries, upstream, row_of, kept, self.how.scale, rows, gradient)
        return gradient
