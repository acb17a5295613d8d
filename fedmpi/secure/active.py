"""What clients check against a server that deviates from the protocol (Bonawitz et al. 2017, section 6.2).

Clients know each other's verification keys from elsewhere than the server. They sign the public keys that
they advertise, and the list of survivors that the server tells them. A client reveals its shares only when
as many clients as the threshold have signed the same list. With a threshold above two thirds no two lists
find that many signatures, if fewer than a third of the clients sign what they should not.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping

from fedmpi.secure.keys import Purpose, SigningKey, Tampered, verify
from fedmpi.secure.protocols import Client, Summand, Vector
from fedmpi.secure.roster import Refused, Roster, TooFew

SIGNATURE_BYTES = 64


def advertisement(run: bytes, number: int, client: int, public: bytes) -> bytes:
    """Return what a client signs to advertise a public key.

    Parameters
    ----------
    run : bytes
        Drawn anew at every start of a run.
    number : int
        Of the advertisement in the run.
    client : int
    public : bytes [32]
        X25519 public key.
    """
    return Purpose(run, "advertise", number, 0, client, client).packed() + public


def statement(roster: Roster, survivors: Collection[int]) -> bytes:
    """Return what clients sign of a sum: who takes part, the threshold, and who survived."""
    members, left = roster.members, sorted(survivors)
    sizes = struct.pack(">qqq", roster.threshold, len(members), len(left))
    numbers = struct.pack(f">{len(members) + len(left)}q", *members, *left)
    return roster.purpose("survivors", 0, 0).packed() + sizes + numbers


class CautiousClient:
    """A client's side of a sum that reveals nothing before it has seen that the others got the same list.

    Parameters
    ----------
    client : Client
        Its side of the protocol.
    number : int
    roster : Roster
    key : SigningKey
        Its own.
    known : mapping of int to bytes
        Verification key of each member; not from the server.
    """

    def __init__(
        self, client: Client, number: int, roster: Roster, key: SigningKey, known: Mapping[int, bytes]
    ) -> None:
        self._client, self._number, self._roster = client, number, roster
        self._key, self._known = key, known
        self._signed: bytes | None = None
        self._confirmed = False

    def offer(self) -> tuple[dict[int, bytes], bytes]:
        """See `secagg.Client`."""
        return self._client.offer()

    def accept(self, sealed: Mapping[int, bytes]) -> None:
        """See `secagg.Client`."""
        self._client.accept(sealed)

    def upload(self, summand: Summand) -> Vector:
        """See `secagg.Client`."""
        return self._client.upload(summand)

    def sign(self, survivors: Collection[int]) -> bytes:
        """Return its signature under the list of survivors that the server told it.

        Raises
        ------
        Refused
            It has signed a list of this sum, is not in this one, or somebody in it takes no part.
        TooFew
            Too few survived.
        """
        if self._signed is not None or self._number not in survivors:
            raise Refused(f"client {self._number} signs one list of survivors, with itself in it")
        if not set(survivors) <= set(self._roster.members):
            raise Refused(f"client {self._number} signs a list of members only")
        if len(survivors) < self._roster.threshold:
            raise TooFew(f"{len(survivors)} of {self._roster.threshold} clients are left")
        self._signed = statement(self._roster, survivors)
        return self._key.sign(self._signed)

    def confirm(self, signatures: Mapping[int, bytes]) -> None:
        """Check the others' signatures under the list that it signed.

        Parameters
        ----------
        signatures : mapping of int to bytes
            By client, as the server relays them.

        Raises
        ------
        Tampered
            A signature is of another list, sum or run, or not of that client.
        Refused
            Fewer members than the threshold have signed.
        """
        signers = set(signatures) & set(self._roster.members)
        if self._signed is None or len(signers) < self._roster.threshold:
            least = self._roster.threshold
            raise Refused(f"client {self._number} saw {len(signers)} of {least} signatures")
        for other in sorted(signers):
            try:
                verify(self._known[other], signatures[other], self._signed)
            except Tampered:
                reason = f"client {other} did not sign the list of survivors that client {self._number} got"
                raise Tampered(reason) from None
        self._confirmed = True

    def answer(self, survivors: Collection[int]) -> bytes:
        """See `secagg.Client`.

        Raises
        ------
        Refused
            It has not seen enough signatures under this list.
        """
        if not self._confirmed or statement(self._roster, survivors) != self._signed:
            raise Refused(f"client {self._number} answers after enough signatures under the same list")
        return self._client.answer(survivors)
