"""For algorithms whose server needs every participant's update, not their mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Floats, Ints


class RowAggregate:
    """Mix-in: the updates of a group travel to rank 0, where `aggregate` takes the place of the mean.

    All groups are updated on rank 0, as with `central`. `Algorithm.weights` are handed on; what they mean
    is the algorithm's own matter.
    """

    def aggregate(self, rows: npt.NDArray[np.float32], weights: Ints) -> Floats:
        """Return what a group's model moves by, float64 [shared].

        Parameters
        ----------
        rows : float32 [k, shared]
            Updates of the group's participants, ascending by client; their models, if `regroups`.
        weights : int64 [k]
        """
        raise NotImplementedError


def ascending(rows: npt.NDArray[np.float32]) -> Floats:
    """Return each coordinate's values in ascending order, float64 [k, shared]."""
    return np.sort(rows, axis=0).astype(np.float64)
