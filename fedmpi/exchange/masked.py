"""Means by secure aggregation: rank 0 learns the sum of a group's updates, and no update (docs/security.md).

Each client has keys, masks and messages of its own, on whatever rank it lives. Sealed messages between
clients go from rank to rank; to rank 0 go sums of masked vectors and what the protocol reveals.

A client that drops out does nothing from its `Step` on. What the others miss of it, they would miss of a
client that is gone; that ranks know beforehand who will be gone only tells them the lengths of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fedmpi.case.reductions import LightSecAggOptions, SecAggPlusOptions, SecureOptions
from fedmpi.client.deltas import on_host
from fedmpi.comm.collectives import Collectives
from fedmpi.comm.reductions import Fixed32
from fedmpi.errors import RankFailed
from fedmpi.exchange.aggregation import Deltas, Groups, Ints, Means, Share, Weights
from fedmpi.exchange.key_ring import DEVIATES, KeyRing
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.party_messages import GroupSum, Letter, PartyMessages
from fedmpi.exchange.pieces import split
from fedmpi.secure.active import SIGNATURE_BYTES
from fedmpi.secure.keys import Tampered
from fedmpi.secure.neighbours import shuffled
from fedmpi.secure.protocols import LightSecAgg, SecAgg, SecureSum, Summand
from fedmpi.secure.roster import Refused, TooFew


def protocol_of(options: SecureOptions, size: int) -> SecureSum:
    """Return the protocol that a case asks for, for vectors of `size` elements."""
    if isinstance(options, LightSecAggOptions):
        return LightSecAgg(size, options.threshold, options.colluders)
    degree = options.neighbours if isinstance(options, SecAggPlusOptions) else 0
    return SecAgg(size, options.threshold, degree)


@dataclass(eq=False)
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
    meter : Meter
    announces : bool
        Whether rank 0 tells the ranks who survived, and which sums it has; else nobody can drop out.
    noise : Share, optional

    Attributes
    ----------
    survivors : dict of int to int
        See `Aggregation`.
    """

    collectives: Collectives
    hosts: Ints
    protocol: SecureSum
    clip: float
    size: int
    keys: KeyRing
    meter: Meter
    announces: bool
    noise: Share | None = None
    survivors: dict[int, int] = field(default_factory=dict)

    secret = True
    central = False

    @cached_property
    def _messages(self) -> PartyMessages:
        return PartyMessages(self.collectives, self.hosts, self.protocol)

    def means(self, groups: Groups, participants: Ints, weights: Weights, deltas: Deltas) -> Means:
        """See `Aggregation`. A group of which too few take part, or are left, has no mean.

        Raises
        ------
        RankFailed
            A client stops, because the server deviates from the protocol.
        """
        means: Means = {}
        together = [group for group in groups.updater if np.count_nonzero(groups.group == group) > 1]
        self.survivors = dict.fromkeys(groups.updater, 0)
        for group, rank in groups.updater.items():
            if group not in together and len(left := groups.survivors(group, participants)):
                self.survivors[group] = 1
                if rank == self.collectives.rank:
                    (member,) = left
                    reduction = Fixed32(weights[member].item(), self.clip)
                    means[group] = reduction.decode(self._summand(reduction, member, weights, deltas))
        sums = self._sums(groups, together, participants, weights)
        try:
            with self.meter.step("shares"):
                self._share(sums)
            self._upload(sums, weights, deltas)
            with self.meter.step("recovery"):
                self._recover(sums)
        except (Refused, Tampered, TooFew) as error:
            raise RankFailed(f"{DEVIATES}: {error}") from None
        self._conclude(sums)
        for each in sums:
            if each.total is not None:
                kept = None
                if len(each.survivors) < len(each.roster.members):
                    kept = groups.total(each.group, weights[each.survivors])
                means[each.group] = each.reduction.decode(each.total, kept)
        return means

    def _summand(self, reduction: Fixed32, member: int, weights: Weights, deltas: Deltas) -> Summand:
        delta = on_host(deltas[int(member)])[: self.size]
        summand: Summand = reduction.encode(delta, weights[member].item())
        if self.noise is not None:
            summand += self.noise(int(member), reduction)
        return summand

    def _sums(
        self, groups: Groups, together: Sequence[int], participants: Ints, weights: Weights
    ) -> list[GroupSum]:
        """Return the sums of groups with two participants or more; rank 0 draws the orders."""
        with self.meter.step("keys"):
            self.keys.begin()
        drawn = {group: shuffled(groups.members(group, participants).tolist()) for group in together}
        whole = np.array([n for order in drawn.values() for n in order], np.int64)
        if together:
            self.collectives.bcast(whole, kind="orders")
        sums = []
        for group, order in split(whole, drawn, lambda group: len(drawn[group])).items():
            if len(order) > 1:
                number = self.keys.next_sum()
                roster = self.protocol.roster(self.keys.run, number, group, order.tolist())
                reduction = Fixed32(groups.total(group, weights[list(roster.members)]), self.clip)
                sums.append(GroupSum.of(group, roster, reduction, groups.steps))
        return sums

    def _share(self, sums: Sequence[GroupSum]) -> None:
        """Let every client make its secrets and share them with its neighbours; rank 0 gets the vaults."""
        sealed: dict[Letter, bytes] = {}
        for each in sums:
            for number in self._messages.hosted(each.sharers):
                key = self.keys.own[number]
                client = self.protocol.client(number, key, self.keys.public, each.roster)
                each.clients[number] = self.keys.guarded(client, number, each.roster)
                offered, each.offered[number] = each.clients[number].offer()
                sealed |= {(each.group, number, other): offered[other] for other in offered}
        received = self._messages.deliver(sums, sealed)
        for each in sums:
            for number, client in list(each.clients.items()):
                near = each.roster.partners(number, each.sharers)
                try:
                    client.accept({other: received[each.group, other, number] for other in near})
                except TooFew:  # it leaves, and so do others whose neighbours are as few
                    del each.clients[number]
        vaults = self._messages.to_server(
            sums,
            "vaults",
            lambda each: each.sharers,
            lambda each, n: self.protocol.vault_bytes(each.roster, n),
            lambda each, n: each.offered[n],
        )
        for each in sums:
            each.vaults = vaults[each.group]

    def _upload(self, sums: Sequence[GroupSum], weights: Weights, deltas: Deltas) -> None:
        """Add the masked updates over clients and ranks, at rank 0."""
        if not sums:
            return
        totals = np.zeros((len(sums), self.size), self.protocol.dtype)
        with self.meter.step("masks"):
            for each, total in zip(sums, totals, strict=True):
                for number in self._messages.hosted(each.uploading):
                    summand = self._summand(each.reduction, number, weights, deltas)
                    upload = each.clients[number].upload(summand)
                    self.collectives.note("upload", upload, client=number)
                    if number in each.counted:
                        self.protocol.add(upload, total)
        with self.meter.step("upload"):
            whole = self.collectives.reduce(totals, kind="masked sums")
        for place, each in enumerate(sums):
            each.total = None if whole is None else whole[place]

    def _recover(self, sums: Sequence[GroupSum]) -> None:
        """Lift the masks from the sums, at rank 0; those of which too few clients are left stay masked."""
        self._announce(sums)
        if sums and self.keys.signed:
            self._confirm(sums)
        answers = self._messages.to_server(
            sums,
            "answers",
            lambda each: each.answering,
            lambda each, n: self.protocol.answer_bytes(each.roster, n, each.sharers),
            lambda each, n: each.clients[n].answer(each.survivors),
        )
        for each in sums if self.collectives.is_root else ():
            server = self.protocol.server(each.roster, each.vaults)
            try:
                each.total = server.unmask(each.total, each.survivors, answers[each.group])
            except TooFew:
                each.total = None

    def _announce(self, sums: Sequence[GroupSum]) -> None:
        """Have rank 0 tell all clients whose uploads it adds."""
        flags = [np.isin(each.roster.members, each.counted).astype(np.uint8) for each in sums]
        if sums and self.announces:
            whole = self.collectives.bcast(np.concatenate(flags), kind="survivors")
            flags = [*split(whole, sums, lambda each: len(each.roster.members)).values()]
        for each, own in zip(sums, flags, strict=True):
            each.survivors = [n for n, flag in zip(each.roster.members, own, strict=True) if flag]

    def _confirm(self, sums: Sequence[GroupSum]) -> None:
        """Have clients sign who survived, by the server's word, and check that the others did; rank 0 relays.

        Where too few are left to sign, nobody answers.

        Raises
        ------
        Refused, Tampered
            A client stops, because it has not seen enough signatures under its list.
        """
        for each in sums:
            if len(each.answering) < each.roster.threshold:
                each.answering = []
        signed = self._messages.to_server(
            sums,
            "signatures",
            lambda each: each.answering,
            lambda each, n: SIGNATURE_BYTES,
            lambda each, n: each.clients[n].sign(each.survivors),
        )
        signers = [(each, number) for each in sums for number in each.answering]
        whole = np.empty((len(signers), SIGNATURE_BYTES), np.uint8)
        for row, (each, number) in zip(whole, signers if self.collectives.is_root else (), strict=False):
            row[:] = np.frombuffer(signed[each.group][number], np.uint8)
        self.collectives.bcast(whole, kind="signatures")
        for each, rows in split(whole, sums, lambda each: len(each.answering)).items():
            relayed = {n: row.tobytes() for n, row in zip(each.answering, rows, strict=True)}
            for number in self._messages.hosted(each.answering):
                each.clients[number].confirm(relayed)

    def _conclude(self, sums: Sequence[GroupSum]) -> None:
        """Have rank 0 tell all which sums it has."""
        has = np.array([each.total is not None for each in sums], np.uint8)
        if sums and self.announces:
            self.collectives.bcast(has, kind="sums there are")
        else:
            has[:] = 1
        for each, there in zip(sums, has, strict=True):
            self.survivors[each.group] = len(each.survivors) if there else 0
