"""What travels of compressed updates: rows to rank 0, or coefficients that are summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from fedmpi.case.reductions import ReductionOptions
from fedmpi.client.deltas import Row, on_host
from fedmpi.comm.collectives import Collectives
from fedmpi.comm.reductions import ZERO_EXPONENT, weighted_exponent
from fedmpi.compression.base import Bytes, Compressor, Linear
from fedmpi.exchange.aggregation import Aggregation, Buffers, Deltas, Floats, Groups, Ints, Plain, Weights
from fedmpi.exchange.pieces import gather

Learn = Callable[[npt.NDArray[np.float32]], None]


class Codes:
    """The compressed updates of a round, and what is behind the parameters of each as it is.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    compressor : Compressor
    size : int
        Elements of an update with all that follows the parameters.

    Attributes
    ----------
    sent : dict of int to uint8
        Of the participants that this rank hosts.
    """

    def __init__(self, collectives: Collectives, hosts: Ints, compressor: Compressor, size: int) -> None:
        self.collectives, self.hosts, self.compressor, self.size = collectives, hosts, compressor, size
        self.sent: dict[int, Bytes] = {}
        self._arrived: dict[int, Row] = {}
        self._travelled: set[int] = set()

    @property
    def behind(self) -> int:
        """Elements behind the parameters."""
        return self.size - self.compressor.size

    def begin(self) -> None:
        """Forget the updates of the round before."""
        self.sent, self._arrived, self._travelled = {}, {}, set()

    def rows(self, clients: Ints, deltas: Deltas, size: int) -> Mapping[int, Row] | None:
        """Return some clients' updates, float32 [size], on rank 0; None elsewhere (a collective call).

        What rank 0 has of this round does not travel again.
        """
        new = [client for client in clients.tolist() if client not in self._travelled]
        self._travelled.update(new)
        rank, length = self.collectives.rank, self.compressor.nbytes + 4 * self.behind
        held = [[client for client in new if self.hosts[client] == r] for r in range(self.collectives.size)]
        own = {client: self._packed(client, deltas) for client in held[rank]}
        if new:
            rows = gather(self.collectives, held, lambda client: length, own, np.uint8, kind="updates") or {}
            self._arrived |= {client: self._unpacked(row) for client, row in rows.items()}
        if not self.collectives.is_root:
            return None
        return {client: self._arrived[client][:size] for client in clients.tolist()}

    def _packed(self, client: int, deltas: Deltas) -> Bytes:
        behind = np.ascontiguousarray(on_host(deltas[client])[self.compressor.size : self.size])
        return np.concatenate([self.sent[client], behind.view(np.uint8)])

    def _unpacked(self, row: Bytes) -> Row:
        nbytes = self.compressor.nbytes
        return np.concatenate([self.compressor.decode(row[:nbytes]), row[nbytes:].view(np.float32)])


class Decoded:
    """Weighted means of updates that rank 0 decodes one by one.

    Parameters
    ----------
    codes : Codes
    options : ReductionOptions
    size : int
        Elements of a mean.
    """

    secret: bool = False
    central: bool = False

    def __init__(self, codes: Codes, options: ReductionOptions, size: int) -> None:
        self._codes, self._options, self._size = codes, options, size
        self.survivors: dict[int, int] = {}

    def means(
        self, groups: Groups, participants: Ints, weights: Weights, deltas: Deltas
    ) -> dict[int, Floats]:
        """See `Aggregation`; updates of groups on several ranks travel, and are summed as if they had not."""
        codes, ranks = self._codes, self._codes.hosts.copy()
        away: list[int] = []
        for group, rank in groups.updater.items():
            members = groups.group == group
            if (codes.hosts[members] != rank).any():
                away += groups.survivors(group, participants).tolist()
                ranks[members] = rank
        rows = codes.rows(np.array(sorted(away), np.int64), deltas, self._size) if away else None
        at_hand = Plain(codes.collectives, ranks, self._options, self._size, Buffers())
        means = at_hand.means(groups, participants, weights, {**deltas, **(rows or {})})
        self.survivors = at_hand.survivors
        return means


class Projected:
    """Weighted means of updates whose coefficients are summed.

    Parameters
    ----------
    codes : Codes
        Of a linear compressor.
    inner : Aggregation
        Of the coefficients and what is behind the parameters.
    size : int
        Elements of a mean.
    learn : callable, optional
        Gets the mean coefficients over all groups, on every rank; then rank 0 updates all groups.
    """

    def __init__(self, codes: Codes, inner: Aggregation, size: int, learn: Learn | None = None) -> None:
        assert isinstance(codes.compressor, Linear)
        self._codes, self._inner, self._size, self._learn = codes, inner, size, learn
        self._compressor: Linear = codes.compressor
        self.secret, self.central = inner.secret, learn is not None

    @property
    def survivors(self) -> dict[int, int]:
        """See `Aggregation`."""
        return self._inner.survivors

    def means(
        self, groups: Groups, participants: Ints, weights: Weights, deltas: Deltas
    ) -> dict[int, Floats]:
        """See `Aggregation`."""
        first, count = self._compressor.size, self._compressor.coefficients
        shorter = {
            client: np.concatenate(
                [sent[-4 * count :].view(np.float32), on_host(deltas[client])[first : self._size]]
            )
            for client, sent in self._codes.sent.items()
        }
        found = self._inner.means(groups, participants, weights, shorter)
        if self._learn is not None and any(self.survivors.values()):
            self._learn(self._together(groups, participants, weights, found))
        return {
            group: np.concatenate([self._compressor.expand(mean[:count]), mean[count:]])
            for group, mean in found.items()
        }

    def _together(
        self, groups: Groups, participants: Ints, weights: Weights, means: Mapping[int, Floats]
    ) -> npt.NDArray[np.float32]:
        """Return the mean of the groups' means on every rank, weighted as their members are."""
        total, whole = np.zeros(self._compressor.coefficients), 0.0
        for group, mean in means.items():
            weight = float(weights[groups.survivors(group, participants)].sum())
            total, whole = total + weight * mean[: len(total)], whole + weight
        mean = (total / max(whole, 1e-300)).astype(np.float32)
        return np.asarray(self._codes.collectives.bcast(mean, kind="basis"))


def mean_on_all(
    collectives: Collectives,
    sums: Aggregation,
    participants: Ints,
    weights: Ints,
    vectors: Mapping[int, Row],
    size: int,
) -> Floats:
    """Return the weighted mean of a vector of each participant on every rank (a collective call).

    Parameters
    ----------
    collectives : Collectives
    sums : Aggregation
        Of vectors of this size.
    participants : int64 [k]
    weights : int64 [clients]
    vectors : mapping of int to float32 [size]
        Of the participants that this rank hosts.
    size : int
    """
    largest = np.array([ZERO_EXPONENT], np.int64)
    if not sums.secret:  # their grid is public
        exponents = [weighted_exponent(row, int(weights[client])) for client, row in vectors.items()]
        own = np.array([max(exponents, default=ZERO_EXPONENT)], np.int64)
        every = collectives.gatherv(own, [1] * collectives.size, "", kind="exponents")
        largest = own if every is None else np.array([max(int(each[0]) for each in every)], np.int64)
        largest = np.asarray(collectives.bcast(largest, kind="exponents"))
    exponent = np.full(len(weights), largest[0], np.int64)
    groups = Groups(np.zeros(len(weights), np.int64), exponent, {0: 0})
    means = sums.means(groups, participants, weights, vectors)
    return np.asarray(collectives.bcast(means.get(0, np.zeros(size)), kind="basis"))
