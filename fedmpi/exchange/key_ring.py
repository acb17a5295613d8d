"""Keys of the clients that a rank hosts, and everybody's public keys."""

from __future__ import annotations

import secrets
from itertools import chain

import numpy as np
import numpy.typing as npt

from fedmpi.comm.collectives import Collectives
from fedmpi.errors import RankFailed
from fedmpi.exchange.pieces import gather, split
from fedmpi.secure.active import SIGNATURE_BYTES, CautiousClient, advertisement
from fedmpi.secure.keys import KEY_BYTES, AgreementKey, SigningKey, Tampered, verify
from fedmpi.secure.protocols import Client
from fedmpi.secure.roster import Roster

_RUN_BYTES = 16

DEVIATES = "the server deviates from the protocol"
"""How the line begins with which a client stops."""


class KeyRing:
    """Makes the keys when a run starts or is resumed; they are in no checkpoint.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    renewed : bool
        Whether clients make new keys for each sum, else for the run.
    signed : bool
        Whether clients sign what they advertise. They then send each other verification keys at the start,
        from rank to rank: the server is not on the way.

    Attributes
    ----------
    run : bytes
        Drawn by rank 0; every key is bound to it.
    own : dict of int to AgreementKey
        Of the hosted clients.
    public : dict of int to bytes
        Of all clients.
    signed : bool
    """

    def __init__(
        self, collectives: Collectives, hosts: npt.NDArray[np.int64], *, renewed: bool, signed: bool = False
    ) -> None:
        self._collectives, self._renewed, self.signed = collectives, renewed, signed
        drawn = np.frombuffer(secrets.token_bytes(_RUN_BYTES), np.uint8).copy()
        self.run = collectives.bcast(drawn, kind="run number").tobytes()
        self.own: dict[int, AgreementKey] = {}
        self.public: dict[int, bytes] = {}
        self._signing: dict[int, SigningKey] = {}
        self._known: dict[int, bytes] = {}
        self._sums = self._advertisements = 0
        self._held = [np.flatnonzero(hosts == rank).tolist() for rank in range(collectives.size)]
        if signed:
            self._introduce()
        self._advertise()

    def begin(self) -> None:
        """Make new keys where each sum has its own (a collective call)."""
        if self._renewed:
            self._advertise()

    def next_sum(self) -> int:
        """Return the number of the next sum; all ranks ask alike."""
        self._sums += 1
        return self._sums

    def guarded(self, client: Client, number: int, roster: Roster) -> Client | CautiousClient:
        """Return a client's side of a sum, which checks what the server says where clients sign."""
        if not self.signed:
            return client
        return CautiousClient(client, number, roster, self._signing[number], self._known)

    def _introduce(self) -> None:
        """Make the hosted clients' signing keys and send the others the verification keys."""
        self._signing = {number: SigningKey() for number in self._held[self._collectives.rank]}
        part = np.frombuffer(b"".join(key.public for key in self._signing.values()), np.uint8)
        sizes = [KEY_BYTES * len(held) for held in self._held]
        pieces = self._collectives.alltoallv([part] * len(sizes), sizes, "verification keys")
        keys = split(np.concatenate(pieces), chain(*self._held), lambda number: KEY_BYTES)
        self._known = {number: key.tobytes() for number, key in keys.items()}

    def _advertise(self) -> None:
        """Make the hosted clients' keys and tell all ranks the public ones; rank 0 relays them."""
        self.own = {number: AgreementKey() for number in self._held[self._collectives.rank]}
        self._advertisements += 1
        width = KEY_BYTES + (SIGNATURE_BYTES if self.signed else 0)
        own = {number: self._advertised(number) for number in self.own}
        found = gather(self._collectives, self._held, lambda n: width, own, np.uint8, kind="public keys")
        whole = np.empty((sum(map(len, self._held)), width), np.uint8)
        for number, row in (found or {}).items():
            whole[number] = row
        self._collectives.bcast(whole, kind="public keys")
        self.public = {number: row[:KEY_BYTES].tobytes() for number, row in enumerate(whole)}
        for _ in self.own if self.signed else ():  # each client checks for itself
            for number, row in enumerate(whole):
                self._check(number, row[KEY_BYTES:].tobytes())

    def _advertised(self, number: int) -> npt.NDArray[np.uint8]:
        """Return a hosted client's public key, with its signature if there is one."""
        public = self.own[number].public
        signature = self._signing[number].sign(self._text(number, public)) if self.signed else b""
        return np.frombuffer(public + signature, np.uint8)

    def _text(self, number: int, public: bytes) -> bytes:
        return advertisement(self.run, self._advertisements, number, public)

    def _check(self, number: int, signature: bytes) -> None:
        """Raise RankFailed unless a client's public key is what it advertised."""
        try:
            verify(self._known[number], signature, self._text(number, self.public[number]))
        except Tampered:
            reason = f"the public key of client {number} is not what that client has signed"
            raise RankFailed(f"{DEVIATES}: {reason}") from None
