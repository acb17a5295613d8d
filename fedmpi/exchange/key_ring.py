"""Keys of the clients that a rank hosts, and everybody's public keys."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fedmpi.comm.collectives import Collectives
from fedmpi.errors import RankFailed
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
        self._collectives, self._hosts, self._renewed = collectives, hosts, renewed
        self.signed = signed
        drawn = np.frombuffer(secrets.token_bytes(_RUN_BYTES), np.uint8).copy()
        self.run = collectives.bcast(drawn, kind="run number").tobytes()
        self.own: dict[int, AgreementKey] = {}
        self.public: dict[int, bytes] = {}
        self._signing: dict[int, SigningKey] = {}
        self._known: dict[int, bytes] = {}
        self._sums = self._advertisements = 0
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

    def cautious(self, client: Client, number: int, roster: Roster) -> CautiousClient:
        """Return a client's side of a sum that checks what the server says."""
        return CautiousClient(client, number, roster, self._signing[number], self._known)

    def _introduce(self) -> None:
        """Make the hosted clients' signing keys and send the others the verification keys."""
        mine = np.flatnonzero(self._hosts == self._collectives.rank)
        self._signing = {int(number): SigningKey() for number in mine}
        part = np.frombuffer(b"".join(key.public for key in self._signing.values()), np.uint8)
        pieces = self._collectives.alltoallv(
            [part] * self._collectives.size, self._bytes_by_rank(KEY_BYTES), "verification keys"
        )
        self._known = self._by_client(np.concatenate(pieces).reshape(-1, KEY_BYTES))

    def _advertise(self) -> None:
        """Make the hosted clients' keys and tell all ranks the public ones; rank 0 relays them."""
        mine = np.flatnonzero(self._hosts == self._collectives.rank)
        self.own = {int(number): AgreementKey() for number in mine}
        self._advertisements += 1
        part = np.frombuffer(b"".join(self._advertised(number) for number in self.own), np.uint8)
        width = KEY_BYTES + (SIGNATURE_BYTES if self.signed else 0)
        pieces = self._collectives.gatherv(part, self._bytes_by_rank(width), kind="public keys")
        whole = np.empty((len(self._hosts), width), np.uint8)
        if pieces is not None:
            whole[:] = np.concatenate(pieces).reshape(-1, width)
        advertised = self._by_client(self._collectives.bcast(whole, kind="public keys"))
        self.public = {number: row[:KEY_BYTES] for number, row in advertised.items()}
        for _ in self.own if self.signed else ():  # each client checks for itself
            self._check({number: row[KEY_BYTES:] for number, row in advertised.items()})

    def _advertised(self, number: int) -> bytes:
        """Return a hosted client's public key, with its signature if there is one."""
        public = self.own[number].public
        if not self.signed:
            return public
        return public + self._signing[number].sign(self._text(number, public))

    def _text(self, number: int, public: bytes) -> bytes:
        return advertisement(self.run, self._advertisements, number, public)

    def _check(self, signatures: Mapping[int, bytes]) -> None:
        """Raise RankFailed unless each public key is what its client advertised."""
        for number, signature in signatures.items():
            try:
                verify(self._known[number], signature, self._text(number, self.public[number]))
            except Tampered:
                reason = f"the public key of client {number} is not what that client has signed"
                raise RankFailed(f"{DEVIATES}: {reason}") from None

    def _bytes_by_rank(self, width: int) -> list[int]:
        """Return the bytes of each rank's clients, of so many each."""
        counts = np.bincount(self._hosts, minlength=self._collectives.size)
        sizes: list[int] = (width * counts).tolist()
        return sizes

    def _by_client(self, rows: npt.NDArray[np.uint8]) -> dict[int, bytes]:
        """Return rows in the order of ranks and their clients, by client."""
        order = np.argsort(self._hosts, kind="stable").tolist()
        return {number: row.tobytes() for number, row in zip(order, rows, strict=True)}
