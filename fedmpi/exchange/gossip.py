"""Models of clients that average with those that they hear: step 5 of a round without a server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.deltas import Delta, Row, on_host
from fedmpi.comm import reductions
from fedmpi.comm.collectives import Collectives
from fedmpi.comm.neighbours import Neighbours
from fedmpi.compression.base import Bytes, Compressor, Linear
from fedmpi.exchange.aggregation import Floats, Ints, Weights
from fedmpi.exchange.compression import ESTIMATE
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.programs.hooks import Hooks
from fedmpi.seeds import Purpose, key
from fedmpi.topologies.base import TopologyOptions
from fedmpi.topologies.mixing import Mixing


class Gossip:
    """The model of each hosted client; in the place of `group_models.Exchange`, every client a group.

    Without compression client i gets x_i + sum_j W_ij (x'_j - x_i), of models x before and x' after training
    (Lian et al., NeurIPS 2017; with local epochs DFedAvg: Sun, Li and Wang, TPAMI 2022). Sums are exact, so
    that the complete graph has the bits of FedAvg with equal weights.

    Compressed it is CHOCO-SGD (Koloskova, Stich and Jaggi, ICML 2019, Algorithm 2): all that hear client j
    keep an estimate y_j of its model; C(x'_j - y_j) travels and moves it, and client i gets
    x'_i + gamma sum_j W_ij (y_j - y_i). Estimates begin with the initial model, which all have (0 in the
    paper). Running statistics travel as they are.

    Clients that take no part send and change nothing: what is theirs of a row of W goes to W_ii. Their
    estimates of others move with these.

    Parameters
    ----------
    topology : TopologyOptions
    seed : int
        The run's.
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    sizes : (int, int)
        Shared elements of a model, and those of them before the running statistics.
    algorithm : Hooks
    trained : callable
        Returns the model, float32 [shared], that a hosted client has after its training.
    kept : mapping of int to dict of str to float32 [parameters]
        What each hosted client keeps: with compression `ESTIMATE`.
    compressor : Compressor or None

    Attributes
    ----------
    models : dict of int to float32 [shared]
        Of each hosted client, between rounds.
    survivors : dict of int to int
        1 for each participant of the last round: it has a new model.
    """

    on_device = False

    def __init__(
        self,
        topology: TopologyOptions,
        seed: int,
        collectives: Collectives,
        hosts: Ints,
        sizes: tuple[int, int],
        algorithm: Hooks,
        trained: Callable[[int], Row],
        kept: Mapping[int, Mapping[str, Tensor]],
        compressor: Compressor | None,
    ) -> None:
        self._topology, self._seed, self._algorithm = topology, seed, algorithm
        self._collectives, self._neighbours = collectives, Neighbours(collectives)
        self._hosts, (self._size, self._parameters) = hosts, sizes
        self._trained, self._kept, self._compressor = trained, kept, compressor
        self.models: dict[int, Delta] = {}
        self.survivors: dict[int, int] = {}
        self._estimates: dict[int, Row] = {}
        self._known: dict[int, Mixing] = {}
        self._bytes = np.zeros((2, len(hosts)), np.int64)

    @property
    def link_bytes(self) -> int:
        """Bytes of a client's message to one that hears it."""
        if self._compressor is None:
            return 4 * self._size
        return self._compressor.nbytes + 4 * (self._size - self._parameters)

    @property
    def client_bytes(self) -> tuple[int, int]:
        """Bytes of the last round that a client sent, and got, at most."""
        up, down = self._bytes.max(axis=1).tolist()
        return up, down

    def expected_bytes(self, participants: Ints) -> Ints:
        """Return the bytes that each client sends where these take part, and gets, int64 [2, clients]."""
        return self._bytes_of(*self._used(self.mixing(0), participants))

    def _used(self, mixing: Mixing, participants: Ints) -> tuple[Ints, Ints]:
        """Return receivers and senders of the links by which something is sent, int64 [links] each."""
        receives, sends = (np.isin(each, participants) for each in (mixing.receivers, mixing.senders))
        used = sends & (receives | (self._compressor is not None))
        return mixing.receivers[used], mixing.senders[used]

    def _bytes_of(self, receivers: Ints, senders: Ints) -> Ints:
        counts = [np.bincount(each, minlength=len(self._hosts)) for each in (senders, receivers)]
        return self.link_bytes * np.stack(counts)

    def mixing(self, round: int) -> Mixing:
        """Return the weights of a round in which all take part."""
        num_clients = len(self._hosts)
        turn = round % self._topology.period(num_clients)
        if turn not in self._known:
            self._known[turn] = Mixing.of(self._topology, num_clients, turn, self._seed)
        return self._known[turn]

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the values of the record's fields."""
        mixing, (up, down) = self.mixing(round), self._bytes
        gap = np.array(mixing.spectral_gap)
        return {
            "degree": mixing.degree,
            "spectral_gap": gap,
            "client_bytes_up": up,
            "client_bytes_down": down,
        }

    def begin(self, group: Ints, initial: Row, clients: Collection[int]) -> None:
        """Begin with one model for all; `clients` are those that this rank hosts."""
        self.models = {client: initial.copy() for client in clients}
        if self._compressor is not None:
            self._estimates = {client: initial[: self._parameters].copy() for client in self._heard()}
            self._keep(clients)

    def restore(self, group: Ints, models: Mapping[int, Row]) -> None:
        """Begin with hosted clients' models, and others' estimates from their ranks (a collective call)."""
        self.models = dict(models)
        if self._compressor is not None:
            own = {number: on_host(each[ESTIMATE]) for number, each in self._kept.items()}
            mixing, sent = self.mixing(0), {number: row.view(np.uint8) for number, row in own.items()}
            arrived = self._exchange(mixing, mixing.receivers, mixing.senders, sent, 4 * self._parameters)
            others = {number: part.view(np.float32) for number, part in arrived.items()}
            self._estimates = {number: row.copy() for number, row in (own | others).items()}

    def regroup(self, before: Ints, after: Ints) -> None:
        """Leave all as it is: groups stay."""

    def run(
        self,
        plan: RoundPlan,
        participants: Ints,
        weights: Weights,
        deltas: Mapping[int, Delta],
        moves: Mapping[int, tuple[Floats, int]],
    ) -> None:
        """Average the hosted participants' models with those that they hear (a collective call).

        The clients have their models after training; see `Exchange.run` for the parameters.
        """
        round = self._algorithm.where.round
        mixing = self.mixing(round)
        receivers, senders = self._used(mixing, participants)
        self._bytes = self._bytes_of(receivers, senders)
        hosted = [number for number in participants.tolist() if number in self._kept]
        trained = {number: self._trained(number) for number in hosted}
        self._prepare(round)
        sent = {number: self._packed(round, number, row) for number, row in trained.items()}
        sent |= self._exchange(mixing, receivers, senders, sent, self.link_bytes)
        shown = {number: self._shown(number, part) for number, part in sent.items()}
        self._keep(hosted)
        for client in hosted:
            others, own = mixing.row(client)
            works = np.isin(others, participants)
            rows = [shown[number] for number in others[works].tolist()]
            args = (client, trained[client], rows, own[works].tolist(), mixing.divisor)
            mean = self._plain(*args) if self._compressor is None else self._choco(shown[client], *args)
            before = on_host(self.models[client])
            self.models[client] = self._algorithm.update(before, mean, 1 + len(rows))
        self.survivors = dict.fromkeys(participants.tolist(), 1)

    def _plain(
        self, client: int, trained: Row, rows: Sequence[Row], weights: Sequence[int], divisor: int
    ) -> Floats:
        """Return sum_j W_ij (x'_j - x_i)."""
        own = divisor - sum(weights)
        return _moves([trained, *rows], [own, *weights], divisor, on_host(self.models[client]))

    def _choco(
        self, shown: Row, client: int, trained: Row, rows: Sequence[Row], weights: Sequence[int], divisor: int
    ) -> Floats:
        """Return x'_i - x_i + gamma sum_j W_ij (y_j - y_i); of running statistics with gamma = 1."""
        moves = _moves(rows, weights, divisor, shown)
        moves[: self._parameters] *= self._topology.step
        own: Row = trained - on_host(self.models[client])
        return moves + own.astype(np.float64)

    def _packed(self, round: int, client: int, trained: Row) -> Bytes:
        """Return what travels of a client's model, uint8 [link_bytes]."""
        if self._compressor is None:
            return trained.view(np.uint8)
        length, stream = self._parameters, key(self._seed, Purpose.COMPRESSION, round, client)
        change = self._compressor.encode(trained[:length] - self._estimates[client], stream)
        return np.concatenate([change, trained[length:].view(np.uint8)])

    def _shown(self, client: int, sent: Bytes) -> Row:
        """Return what all that hear a client know of its model, float32 [shared], after what it sent."""
        if self._compressor is None:
            return sent.view(np.float32)
        nbytes, estimate = self._compressor.nbytes, self._estimates[client]
        estimate += self._compressor.decode(sent[:nbytes])
        return np.concatenate([estimate, sent[nbytes:].view(np.float32)])

    def _prepare(self, round: int) -> None:
        """Choose the basis that all clients have in a round."""
        if isinstance(self._compressor, Linear):
            stream = key(self._seed, Purpose.COMPRESSION, round)
            self._compressor.prepare({}, stream, lambda vectors, size: np.zeros(size))

    def _keep(self, clients: Collection[int]) -> None:
        """Have hosted clients keep their own estimates, which are in checkpoints."""
        if self._compressor is not None:
            for client in clients:
                kept = self._kept[client][ESTIMATE]
                kept.copy_(torch.from_numpy(self._estimates[client]))

    def _heard(self) -> list[int]:
        """Return the hosted clients and those that they hear."""
        mixing, hosted = self.mixing(0), list(self._kept)
        heard = mixing.senders[np.isin(mixing.receivers, hosted)].tolist()
        return sorted({*hosted, *heard})

    def _exchange(
        self, mixing: Mixing, receivers: Ints, senders: Ints, sent: Mapping[int, Bytes], nbytes: int
    ) -> dict[int, Bytes]:
        """Return what comes from clients of other ranks, each once; nothing travels within a rank.

        Parameters
        ----------
        mixing : Mixing
            Whose links are those of the ranks.
        receivers, senders : int64 [links]
            The links that are used.
        sent : mapping of int to uint8 [nbytes]
            Of hosted clients.
        nbytes : int
        """
        links, rank = self._travelling(mixing.receivers, mixing.senders), self._collectives.rank
        if not links:
            return {}
        wanted = links if receivers is mixing.receivers else self._travelling(receivers, senders)
        parts = {
            target: np.concatenate([sent[number] for number in numbers])
            for (source, target), numbers in wanted.items()
            if source == rank
        }
        coming = {source: numbers for (source, target), numbers in wanted.items() if target == rank}
        counts = {source: nbytes * len(numbers) for source, numbers in coming.items()}
        arrived = self._neighbours.exchange(links, parts, counts)
        return {
            number: part
            for source, numbers in coming.items()
            for number, part in zip(numbers, arrived[source].reshape(-1, nbytes), strict=True)
        }

    def _travelling(self, receivers: Ints, senders: Ints) -> dict[tuple[int, int], list[int]]:
        """Return the clients, ascending, whose messages go from one rank to another, by these two."""
        shape = (self._collectives.size, self._collectives.size, len(self._hosts))
        source, target = self._hosts[senders], self._hosts[receivers]
        every = np.unique(np.ravel_multi_index((source, target, senders), shape)[source != target])
        found: dict[tuple[int, int], list[int]] = {}
        for here, there, client in np.stack(np.unravel_index(every, shape), axis=1).tolist():
            found.setdefault((here, there), []).append(client)
        return found


def _moves(rows: Sequence[Row], weights: Sequence[int], divisor: int, origin: Row) -> Floats:
    """Return the sum of weights times what rows are beside `origin`, over the divisor, float64 [shared].

    NaN where a difference overflows, which ends the run.
    """
    changes = [row - origin for row in rows]
    if not changes:
        return np.zeros(len(origin))
    if not all(np.isfinite(change).all() for change in changes):
        return np.full(len(origin), np.nan)
    every = list(zip(changes, weights, strict=True))
    exponent = max(reductions.weighted_exponent(change, weight) for change, weight in every)
    exact, total = reductions.Exact(len(rows), exponent, divisor), np.zeros(len(origin), np.int64)
    for change, weight in every:
        exact.add(change, weight, total)
    return exact.decode(total)
