"""SecAgg (Bonawitz et al. 2017) and SecAgg+ (Bell et al. 2020): masks of pairs that cancel in the sum.

Client u uploads ``y_u = x_u + PRG(b_u) + sum over v > u of PRG(s_uv) - sum over v < u of PRG(s_uv)``
modulo 2^32. Shares of b_u go to u's neighbours; of a survivor the server gets b_u from them. Of a client
that shared and then dropped out it gets the seeds s_uv of this round, and of no other: a client keeps its
key pair for the run, so it shares not the private key but the key e_u of a vault that holds the seeds of
the round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from fedmpi.secure import shamir
from fedmpi.secure.keys import KEY_BYTES, AgreementKey, fresh_secret, seal, unseal
from fedmpi.secure.masks import Stretcher, Words
from fedmpi.secure.roster import Refused, Roster, TooFew

Summand = npt.NDArray[np.int32]

_SHARES = 2 * shamir.SHARE_BYTES
"""Bytes of a message between neighbours before it is sealed: a share of b_u and one of e_u."""


class Client:
    """One client's side of a sum; its secrets leave it only as the protocol says.

    Parameters
    ----------
    number : int
    key : AgreementKey
        Its own.
    public : mapping of int to bytes
        Public key of each member.
    roster : Roster
    stretcher : Stretcher
        Scratch memory; may be shared between clients.
    """

    def __init__(
        self,
        number: int,
        key: AgreementKey,
        public: Mapping[int, bytes],
        roster: Roster,
        stretcher: Stretcher,
    ) -> None:
        self.number, self._roster, self._stretcher = number, roster, stretcher
        self._channels, self._seeds = {}, {}
        for other in roster.neighbours[number]:
            pair = min(number, other), max(number, other)
            self._channels[other] = key.agreed(public[other], roster.purpose("shares", *pair))
            self._seeds[other] = key.agreed(public[other], roster.purpose("pair", *pair))
        self._own, self._vault_key = fresh_secret(), fresh_secret()
        self._held: dict[int, bytes] = {}
        self._partners: list[int] = []
        self._answered = False

    def offer(self) -> tuple[dict[int, bytes], bytes]:
        """Return the sealed shares by neighbour, and the vault, which goes to the server."""
        roster, me = self._roster, self.number
        circle = roster.circle(me)
        places = [roster.place(other) for other in circle]
        own = shamir.split(self._own, roster.threshold, places)
        vault = shamir.split(self._vault_key, roster.threshold, places)
        shares = {other: own[place] + vault[place] for other, place in zip(circle, places, strict=True)}
        self._held[me] = shares.pop(me)
        sealed = {
            other: seal(self._channels[other], share, roster.purpose("shares", me, other))
            for other, share in shares.items()
        }
        seeds = b"".join(self._seeds[other] for other in sorted(roster.neighbours[me]))
        return sealed, seal(self._vault_key, seeds, roster.purpose("vault", me, me))

    def accept(self, sealed: Mapping[int, bytes]) -> None:
        """Take the shares of those neighbours that sent theirs: its partners in this sum.

        Raises
        ------
        Tampered
            A message is not what the neighbour sent.
        TooFew
            Fewer than the threshold shared, itself included.
        """
        roster, me = self._roster, self.number
        self._partners = roster.partners(me, sealed)
        if len(self._partners) + 1 < roster.threshold:
            raise TooFew(f"{len(self._partners) + 1} of {roster.threshold} clients shared their secrets")
        for other in self._partners:
            purpose = roster.purpose("shares", other, me)
            self._held[other] = unseal(self._channels[other], sealed[other], purpose)

    def upload(self, summand: Summand) -> Words:
        """Return the masked summand, uint32 [size]."""
        total = summand.view(np.uint32).copy()
        self._stretcher.add(self._own, total)
        for other in self._partners:
            change = self._stretcher.add if other > self.number else self._stretcher.subtract
            change(self._seeds[other], total)
        return total

    def answer(self, survivors: Collection[int]) -> bytes:
        """Return its shares, one per partner and one of its own: of b of survivors, of e of the others.

        A client whose upload is put aside, because none of its partners is left, shares no mask with a
        survivor. It helps to open the vaults of those that dropped out.

        Raises
        ------
        Refused
            It was asked before in this sum, or its upload is said to be missing where a partner's is not.
        TooFew
            Too few survived for the sum to hide a single update.
        """
        circle = sorted([self.number, *self._partners])
        stayed = [other for other in circle if other in survivors]
        if self._answered or (stayed and self.number not in stayed):
            raise Refused(f"client {self.number} reveals one kind of share of a client, once")
        if len(stayed or survivors) < self._roster.threshold:
            raise TooFew(f"{len(stayed or survivors)} of {self._roster.threshold} clients are left")
        if not self._roster.is_connected(survivors):
            raise TooFew("the clients that are left share no masks between their parts")
        self._answered = True
        cut = shamir.SHARE_BYTES
        return b"".join(
            self._held[other][:cut] if other in survivors else self._held[other][cut:] for other in circle
        )


class Server:
    """The server's side of a sum.

    Parameters
    ----------
    roster : Roster
    vaults : mapping of int to bytes
        Of the clients that shared their secrets.
    stretcher : Stretcher
    """

    def __init__(self, roster: Roster, vaults: Mapping[int, bytes], stretcher: Stretcher) -> None:
        self._roster, self._vaults, self._stretcher = roster, vaults, stretcher

    def unmask(self, total: Words, survivors: Collection[int], answers: Mapping[int, bytes]) -> Summand:
        """Return the sum of the survivors' summands, int32 [size].

        Parameters
        ----------
        total : uint32 [size]
            Sum of their uploads; changed in place.
        survivors : collection of int
            Clients whose uploads it holds.
        answers : mapping of int to bytes
            Of those that answered.

        Raises
        ------
        TooFew
            Fewer survived than the threshold, or some secret has fewer shares.
        """
        if len(survivors) < self._roster.threshold:
            raise TooFew(f"{len(survivors)} of {self._roster.threshold} clients are left")
        shares = self._shares(answers)
        secrets = {client: self._secret(client, shares) for client in self._needed(survivors)}
        for client in survivors:
            self._stretcher.subtract(secrets.pop(client), total)
        for client, key in secrets.items():
            for other, seed in self._seeds(client, key).items():
                if other in survivors:  # client `other` added the seed's mask if it is the smaller number
                    change = self._stretcher.subtract if client > other else self._stretcher.add
                    change(seed, total)
        return total.view(np.int32)

    def _needed(self, survivors: Collection[int]) -> list[int]:
        """Return whose secret is needed: survivors, and others of whom a survivor's upload holds a mask."""
        gone = [n for n in self._vaults if n not in survivors]
        return [*survivors, *(n for n in gone if self._roster.partners(n, survivors))]

    def _shares(self, answers: Mapping[int, bytes]) -> dict[int, dict[int, bytes]]:
        """Return the answers' shares by the client whose secret they are of, and by place."""
        shares: dict[int, dict[int, bytes]] = {client: {} for client in self._vaults}
        for client, answer in answers.items():
            circle = sorted([client, *self._roster.partners(client, self._vaults)])
            cuts = range(0, len(answer), shamir.SHARE_BYTES)
            for other, cut in zip(circle, cuts, strict=True):
                shares[other][self._roster.place(client)] = answer[cut : cut + shamir.SHARE_BYTES]
        return shares

    def _secret(self, client: int, shares: Mapping[int, Mapping[int, bytes]]) -> bytes:
        found, threshold = shares[client], self._roster.threshold
        if len(found) < threshold:
            raise TooFew(f"{len(found)} of {threshold} shares of client {client}'s secret")
        return shamir.combine(dict(list(found.items())[:threshold]))

    def _seeds(self, client: int, key: bytes) -> dict[int, bytes]:
        opened = unseal(key, self._vaults[client], self._roster.purpose("vault", client, client))
        owners = sorted(self._roster.neighbours[client])
        pieces = [opened[cut : cut + KEY_BYTES] for cut in range(0, len(opened), KEY_BYTES)]
        return dict(zip(owners, pieces, strict=True))
