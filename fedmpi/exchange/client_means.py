"""A mean of the participants' models for each of them, with weights of its own; on rank 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.capabilities import CLIENT_WEIGHTS
from fedmpi.client.deltas import Delta
from fedmpi.exchange.aggregation import Groups, Rows, Weights
from fedmpi.exchange.meter import Meter
from fedmpi.store.schema import Field

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class ClientMeans:
    """Means of algorithms that decide on "means": an `Aggregation` for groups of one client each.

    The participants' models travel to rank 0 in one `Gatherv`. Each mean is summed there in float64, client
    by client in ascending order, so that it is the same on any number of ranks.

    Parameters
    ----------
    rows : Rows
    size : int
        Elements of a model that travel.
    meter : Meter
    """

    secret: ClassVar[bool] = False

    def __init__(self, rows: Rows, size: int, meter: Meter) -> None:
        self._rows, self._size, self._meter = rows, size, meter
        self.survivors: dict[int, int] = {}
        self._participants, self._weights = np.zeros(0, np.int64), np.zeros((0, 0))

    @property
    def upload_bytes(self) -> int:
        """See `Aggregation`."""
        return 4 * self._size

    def weigh(self, weights: Floats, participants: Ints) -> None:
        """Set the weights of the round's means, float64 [k, k], of participants [k]; on rank 0."""
        self._weights, self._participants = weights, participants

    def means(
        self, groups: Groups, participants: Ints, weights: Weights, deltas: Mapping[int, Delta]
    ) -> dict[int, Floats]:
        """See `Aggregation`; `weights` are those of `weigh` instead."""
        self.survivors = {group: len(participants) for group in groups.updater}
        rows = self._rows.gather(participants, deltas)
        if rows is None:
            return {}
        means: dict[int, Floats] = {}
        with self._meter.phase("server"):
            for client, own in zip(participants.tolist(), self._weights, strict=True):
                mean = np.zeros(self._size)
                for other in np.flatnonzero(own):
                    mean += own[other] * rows[int(participants[other])].astype(np.float64)
                means[int(groups.group[client])] = mean
        return means

    def fields(self, fields: Sequence[Field], num_clients: int) -> dict[str, npt.NDArray[Any]]:
        """Return the weights of the round, if the algorithm records them; NaN for clients that sat out."""
        if all(field.name != CLIENT_WEIGHTS for field in fields):
            return {}
        found = np.full((num_clients, num_clients), np.nan)
        found[np.ix_(self._participants, self._participants)] = self._weights
        return {CLIENT_WEIGHTS: found}
