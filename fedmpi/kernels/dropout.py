"""Dropout on rows that each represent several equal nodes; every node has its own mask."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints
from fedmpi.kernels import gin_loops as kernels
from fedmpi.kernels.convolution import entries
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.dropout import DropoutStreams

Counts = npt.NDArray[np.unsignedinteger]


class FastDropout:
    """The masks of `DropoutStreams`, counted over the nodes of each row.

    Parameters
    ----------
    hidden, width : int
        Columns, and with padding.
    drop : float
    scratch : Scratch
    """

    def __init__(self, hidden: int, width: int, drop: float, scratch: Scratch) -> None:
        self._hidden, self._width, self._drop, self._scratch = hidden, width, drop, scratch
        self._scale = 1.0 / (1.0 - drop)

    def kept(
        self, name: str, streams: DropoutStreams, layer: int, member_ptr: Ints, members: Ints, largest: int
    ) -> Counts:
        """Return how many members of each row keep each element, [Q, width].

        Parameters
        ----------
        name : str
            Of the scratch array.
        streams : DropoutStreams
        layer : int
            Number of the dropout layer.
        member_ptr, members : int32 [Q + 1], int32 [N]
            Nodes of each row.
        largest : int
            Most members of a row; decides the width of the integers.
        """
        kept = self._scratch(name, len(member_ptr) - 1, self._width, np.uint8 if largest < 256 else np.uint16)
        stream, bits, threshold = streams.cells(layer, self._drop)
        kernels.count_kept(stream, bits, threshold, member_ptr, members, self._hidden, kept)
        return kept  # type: ignore[return-value]

    def apply(self, rows: Floats, row_of: Ints, kept: Counts, name: str) -> Floats:
        """Return ``rows[row_of]`` after dropout, summed over each row's nodes, [Q, width].

        Parameters
        ----------
        rows : float32 [n, width]
        row_of : int32 [Q]
            Row of each class.
        kept : unsigned integer [Q, width]
            What `kept` returned.
        name : str
            Of the scratch array.
        """
        out = self._scratch(name, len(row_of), self._width)
        kernels.drop(rows, row_of, kept, self._scale, out)
        return out

    def back(
        self, matrix: Csr, upstream: Floats, rows: Floats, row_of: Ints, kept: Counts, name: str
    ) -> Floats:
        """Return the gradient of rows [n, width] before ReLU and dropout.

        Parameters
        ----------
        matrix : Csr
            The transposed matrix [Q, p] of what follows.
        upstream : float32 [p, width]
        """
        gradient = self._scratch(name, len(rows), self._width)
        gradient[:] = 0
        kernels.dropout_backward(*entries(matrix), upstream, row_of, kept, self._scale, rows, gradient)
        return gradient
