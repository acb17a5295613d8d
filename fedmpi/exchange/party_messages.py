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
from fedmpi.exchange.pieces import gather, split
from fedmpi.secure.protocols import SecureSum
from fedmpi.secure.roster import Roster


@dataclass(eq=False)
class GroupSum:
    """One group's sum: its parties, and the clients that this rank hosts.

    Attributes
    ----------
    sharers, uploading, counted, answering : list of int
        Members that share their secrets, upload, whose uploads are added, and that answer.
    survivors : list of int
        Members whose uploads the server has, as it announces them.
    clients : dict of int to protocols.Client
        A `CautiousClient` each where clients sign.
    """

    group: int
    roster: Roster
    reduction: Fixed32
    sharers: list[int]
    uploading: list[int]
    counted: list[int]
    answering: list[int]
    survivors: list[int] = field(default_factory=list)
    clients: dict[int, Any] = field(default_factory=dict)
    offered: dict[int, bytes] = field(default_factory=dict)
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


Letter = tuple[int, int, int]
"""Group, sender and receiver of a message between clients."""


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

    def _between(self, sums: Sequence[GroupSum], sender: int, receiver: int) -> Iterator[Letter]:
        """Yield the messages from one rank to another, in their order."""
        for each in sums:
            for number in self.hosted(each.sharers, sender):
                for other in self.hosted(each.roster.partners(number, each.sharers), receiver):
                    yield each.group, number, other

    def deliver(self, sums: Sequence[GroupSum], sealed: Mapping[Letter, bytes]) -> dict[Letter, bytes]:
        """Bring sealed messages to the ranks of their receivers."""
        if not sums:
            return {}
        me, ranks = self._collectives.rank, range(self._collectives.size)
        lengths = {each.group: self._protocol.sealed_bytes(each.roster) for each in sums}
        sent = [b"".join(sealed[letter] for letter in self._between(sums, me, rank)) for rank in ranks]
        coming = [letter for rank in ranks for letter in self._between(sums, rank, me)]
        expected = [sum(lengths[each[0]] for each in self._between(sums, rank, me)) for rank in ranks]
        parts = [np.frombuffer(text, np.uint8) for text in sent]
        texts = self._collectives.alltoallv(parts, expected, "sealed shares")
        received = split(np.concatenate(texts), coming, lambda letter: lengths[letter[0]])
        return {letter: text.tobytes() for letter, text in received.items()}

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
        lengths = {key: length(*key) for keys in held for key in keys}
        found: dict[int, dict[int, bytes]] = {each.group: {} for each in sums}
        if any(lengths.values()):
            own = {key: np.frombuffer(message(*key), np.uint8) for key in held[self._collectives.rank]}
            texts = gather(self._collectives, held, lengths.__getitem__, own, np.uint8, kind=kind)
            for (each, number), text in (texts or {}).items():
                found[each.group][number] = text.tobytes()
        return found
