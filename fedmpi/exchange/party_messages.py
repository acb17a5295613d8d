"""Sums of groups whose parties live on ranks, and the messages between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedmpi.comm.collectives import Collectives
from fedmpi.comm.reductions import Fixed32
from fedmpi.exchange.aggregation import Ints
from fedmpi.exchange.dropouts import Step
from fedmpi.secure.active import CautiousClient
from fedmpi.secure.protocols import Client, SecureSum
from fedmpi.secure.roster import Roster


@dataclass
class GroupSum:
    """One group's sum: its parties, and the clients that this rank hosts.

    Attributes
    ----------
    sharers, uploading, counted, answering : list of int
        Members that share their secrets, upload, whose uploads are added, and that answer.
    survivors : list of int
        Members whose uploads the server has, as it announces them.
    """

    group: int
    roster: Roster
    reduction: Fixed32
    sharers: list[int]
    uploading: list[int]
    counted: list[int]
    answering: list[int]
    survivors: list[int] = field(default_factory=list)
    clients: dict[int, Client] = field(default_factory=dict)
    offered: dict[int, bytes] = field(default_factory=dict)
    cautious: dict[int, CautiousClient] = field(default_factory=dict)
    vaults: dict[int, bytes] = field(default_factory=dict)
    total: Any = None

    @classmethod
    def of(cls, group: int, roster: Roster, reduction: Fixed32, steps: Ints | None) -> GroupSum:
        """Return a sum whose members drop out before these steps; those with too few neighbours leave.

        Uploads that no masks join with most of the others are put aside; their clients help on.
        """

        def stay(members: Iterable[int], step: Step) -> list[int]:
            return [n for n in members if steps is None or steps[n] > step]

        sharers = stay(roster.members, Step.SHARES)
        uploading = [n for n in stay(sharers, Step.UPLOAD) if roster.is_enough(n, sharers)]
        counted = roster.joined(uploading)
        answering = [n for n in stay(uploading, Step.ANSWERS) if roster.can_answer(n, counted)]
        return cls(group, roster, reduction, sharers, uploading, counted, answering)


class PartyMessages:
    """Brings what clients send each other to their ranks, and what they send the server to rank 0.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    protocol : SecureSum
        Says how long messages are.
    """

    def __init__(self, collectives: Collectives, hosts: Ints, protocol: SecureSum) -> None:
        self._collectives, self._hosts, self._protocol = collectives, hosts, protocol

    def hosted(self, clients: Iterable[int], rank: int | None = None) -> list[int]:
        """Return those of some clients that live on a rank, on this one by default."""
        rank = self._collectives.rank if rank is None else rank
        return [number for number in clients if self._hosts[number] == rank]

    def _between(
        self, sums: Sequence[GroupSum], sender: int, receiver: int
    ) -> Iterator[tuple[GroupSum, int, int]]:
        """Yield sum, sender and receiver of the messages from one rank to another, in their order."""
        for each in sums:
            for number in self.hosted(each.sharers, sender):
                for other in self.hosted(each.roster.partners(number, each.sharers), receiver):
                    yield each, number, other

    def deliver(
        self, sums: Sequence[GroupSum], sealed: Mapping[tuple[int, int, int], bytes]
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
        texts = self._collectives.alltoallv(parts, expected, "sealed shares")
        received = {}
        for rank, text in enumerate(texts):
            place = 0
            for each, a, b in self._between(sums, rank, me):
                received[each.group, a, b] = text[place : place + lengths[each.group]].tobytes()
                place += lengths[each.group]
        return received

    def to_server(
        self,
        sums: Sequence[GroupSum],
        kind: str,
        senders: Callable[[GroupSum], Sequence[int]],
        length: Callable[[GroupSum, int], int],
        message: Callable[[GroupSum, int], bytes],
    ) -> dict[int, dict[int, bytes]]:
        """Gather a message of each sender at rank 0, by group and client; on another rank, nothing."""
        held = [
            [(each, number) for each in sums for number in self.hosted(senders(each), rank)]
            for rank in range(self._collectives.size)
        ]
        counts = [sum(length(*one) for one in some) for some in held]
        found: dict[int, dict[int, bytes]] = {each.group: {} for each in sums}
        if not sum(counts):
            return found
        own = b"".join(message(*one) for one in held[self._collectives.rank])
        pieces = self._collectives.gatherv(np.frombuffer(own, np.uint8), counts, kind=kind)
        for some, piece in zip(held, pieces or (), strict=pieces is not None):
            place = 0
            for each, number in some:
                end = place + length(each, number)
                found[each.group][number] = piece[place:end].tobytes()
                place = end
        return found
