"""Means by secure aggregation: rank 0 learns the sum of a group's updates, and no update (docs/security.md).

Each client has keys, masks and messages of its own, on whatever rank it lives. Sealed messages between
clients go from rank to rank; to rank 0 go sums of masked vectors and what the protocol reveals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import LightSecAggOptions, SecAggPlusOptions, SecureOptions
from fedmpi.comm.collectives import Collectives
from fedmpi.comm.reductions import Fixed32
from fedmpi.engine.aggregation import Floats, Groups, Ints, Shares, Weights
from fedmpi.engine.buffers import Delta, on_host
from fedmpi.engine.key_ring import KeyRing
from fedmpi.secure.neighbours import shuffled
from fedmpi.secure.protocols import Client, LightSecAgg, SecAgg, SecureSum
from fedmpi.secure.roster import Roster, TooFew

Bytes = npt.NDArray[np.uint8]


def protocol_of(options: SecureOptions, size: int) -> SecureSum:
    """Return the protocol that a case asks for, for vectors of `size` elements."""
    if isinstance(options, LightSecAggOptions):
        return LightSecAgg(size, options.threshold, options.colluders)
    degree = options.neighbours if isinstance(options, SecAggPlusOptions) else 0
    return SecAgg(size, options.threshold, degree)


@dataclass
class _Sum:
    """One group's sum: its parties, and the clients that this rank hosts."""

    group: int
    roster: Roster
    reduction: Fixed32
    clients: dict[int, Client] = field(default_factory=dict)
    vaults: dict[int, bytes] = field(default_factory=dict)
    total: Any = None


class Masked:
    """Weighted means whose sums equal those of "fixed32" bit for bit.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    protocol : SecureSum
    clip, size
        Bound and number of the elements of an update.
    keys : KeyRing
    noise : Shares, optional
        Added to each participant's summand.
    """

    secret: ClassVar[bool] = True

    def __init__(
        self,
        collectives: Collectives,
        hosts: Ints,
        protocol: SecureSum,
        clip: float,
        size: int,
        keys: KeyRing,
        noise: Shares | None = None,
    ) -> None:
        self._collectives, self._hosts, self._protocol = collectives, hosts, protocol
        self._clip, self._size, self._keys, self._noise = clip, size, keys, noise

    @property
    def upload_bytes(self) -> int:
        """See `Aggregation`: the masked vector alone."""
        return 4 * self._size

    def means(
        self, groups: Groups, participants: Ints, weights: Weights, deltas: Mapping[int, Delta]
    ) -> dict[int, Floats]:
        """See `Aggregation`. A group of which too few take part has no mean."""
        means: dict[int, Floats] = {}
        together = [group for group in groups.updater if np.count_nonzero(groups.group == group) > 1]
        for group, rank in groups.updater.items():
            if group not in together and rank == self._collectives.rank:
                (member,) = groups.members(group, participants)
                reduction = Fixed32(weights[member].item(), self._clip)
                means[group] = reduction.decode(self._summand(reduction, member, weights, deltas))
        sums = self._sums(groups, together, participants, weights)
        self._share(sums)
        self._upload(sums, weights, deltas)
        self._recover(sums)
        for each in sums:
            if each.total is not None:
                means[each.group] = each.reduction.decode(each.total)
        return means

    def _summand(
        self, reduction: Fixed32, member: int, weights: Weights, deltas: Mapping[int, Delta]
    ) -> npt.NDArray[np.int32]:
        delta = on_host(deltas[int(member)])[: self._size]
        summand: npt.NDArray[np.int32] = reduction.encode(delta, weights[member].item())
        if self._noise is not None:
            summand += self._noise.share(int(member), reduction)
        return summand

    def _sums(
        self, groups: Groups, together: Sequence[int], participants: Ints, weights: Weights
    ) -> list[_Sum]:
        """Return the sums of groups with two participants or more; rank 0 draws the orders."""
        self._keys.begin()
        orders = [shuffled(groups.members(group, participants).tolist()) for group in together]
        if orders:
            drawn = self._collectives.bcast(np.array([n for order in orders for n in order], np.int64))
            cuts = np.cumsum([len(order) for order in orders])[:-1]
            orders = [part.tolist() for part in np.split(drawn, cuts)]
        sums = []
        for group, order in zip(together, orders, strict=True):
            if len(order) > 1:
                roster = self._protocol.roster(self._keys.run, self._keys.next_sum(), group, order)
                reduction = Fixed32(groups.total(group, weights[list(roster.members)]), self._clip)
                sums.append(_Sum(group, roster, reduction))
        return sums

    def _share(self, sums: Sequence[_Sum]) -> None:
        """Let every client make its secrets and share them with its neighbours."""
        sealed: dict[tuple[int, int, int], bytes] = {}
        for each in sums:
            for number in self._hosted(each.roster):
                key = self._keys.own[number]
                each.clients[number] = self._protocol.client(number, key, self._keys.public, each.roster)
                offered, vault = each.clients[number].offer()
                each.vaults[number] = vault
                sealed |= {(each.group, number, other): text for other, text in offered.items()}
        received = self._deliver(sums, sealed)
        for each in sums:
            for number, client in each.clients.items():
                near = each.roster.neighbours[number]
                client.accept({other: received[each.group, other, number] for other in near})

    def _upload(self, sums: Sequence[_Sum], weights: Weights, deltas: Mapping[int, Delta]) -> None:
        """Add the masked updates over clients and ranks, at rank 0."""
        if not sums:
            return
        totals = np.zeros((len(sums), self._size), self._protocol.dtype)
        for each, total in zip(sums, totals, strict=True):
            for number, client in each.clients.items():
                summand = self._summand(each.reduction, number, weights, deltas)
                self._protocol.add(client.upload(summand), total)
        whole = self._collectives.reduce(totals)
        for place, each in enumerate(sums):
            each.total = None if whole is None else whole[place]

    def _recover(self, sums: Sequence[_Sum]) -> None:
        """Lift the masks from the sums, at rank 0."""
        survivors = {each.group: list(each.roster.members) for each in sums}
        vaults = self._to_server(
            sums, lambda each, n: self._protocol.vault_bytes(each.roster, n), lambda each, n: each.vaults[n]
        )
        answers = self._to_server(
            sums,
            lambda each, n: self._protocol.answer_bytes(each.roster, n, survivors[each.group]),
            lambda each, n: each.clients[n].answer(survivors[each.group]),
        )
        for each in sums if self._collectives.is_root else ():
            server = self._protocol.server(each.roster, vaults[each.group])
            try:
                each.total = server.unmask(each.total, survivors[each.group], answers[each.group])
            except TooFew:
                each.total = None

    def _hosted(self, roster: Roster, rank: int | None = None) -> list[int]:
        """Return the members of a sum on a rank, on this one by default."""
        rank = self._collectives.rank if rank is None else rank
        return [number for number in roster.members if self._hosts[number] == rank]

    def _between(self, sums: Sequence[_Sum], sender: int, receiver: int) -> Iterator[tuple[_Sum, int, int]]:
        """Yield sum, sender and receiver of the messages from one rank to another, in their order."""
        for each in sums:
            for number in self._hosted(each.roster, sender):
                for other in each.roster.neighbours[number]:
                    if self._hosts[other] == receiver:
                        yield each, number, other

    def _deliver(
        self, sums: Sequence[_Sum], sealed: Mapping[tuple[int, int, int], bytes]
    ) -> dict[tuple[int, int, int], bytes]:
        """Bring sealed messages, by group, sender and receiver, to the ranks of their receivers."""
        me, ranks = self._collectives.rank, range(self._collectives.size)
        lengths = {each.group: self._protocol.sealed_bytes(each.roster) for each in sums}
        parts, expected = [], []
        for rank in ranks:
            sent = [sealed[each.group, a, b] for each, a, b in self._between(sums, me, rank)]
            parts.append(np.frombuffer(b"".join(sent), np.uint8))
            expected.append(sum(lengths[each.group] for each, _, _ in self._between(sums, rank, me)))
        if not sums:
            return {}
        texts = self._collectives.alltoallv(parts, expected)
        received = {}
        for rank, text in enumerate(texts):
            place = 0
            for each, a, b in self._between(sums, rank, me):
                received[each.group, a, b] = text[place : place + lengths[each.group]].tobytes()
                place += lengths[each.group]
        return received

    def _to_server(
        self,
        sums: Sequence[_Sum],
        length: Callable[[_Sum, int], int],
        message: Callable[[_Sum, int], bytes],
    ) -> dict[int, dict[int, bytes]]:
        """Gather a message of each member at rank 0, by group and client; of another rank, nothing."""
        held = [
            [(each, number) for each in sums for number in self._hosted(each.roster, rank)]
            for rank in range(self._collectives.size)
        ]
        counts = [sum(length(*one) for one in some) for some in held]
        found: dict[int, dict[int, bytes]] = {each.group: {} for each in sums}
        if not sum(counts):
            return found
        own = b"".join(message(*one) for one in held[self._collectives.rank])
        pieces = self._collectives.gatherv(np.frombuffer(own, np.uint8), counts)
        for some, piece in zip(held, pieces or (), strict=pieces is not None):
            place = 0
            for each, number in some:
                end = place + length(each, number)
                found[each.group][number] = piece[place:end].tobytes()
                place = end
        return found
