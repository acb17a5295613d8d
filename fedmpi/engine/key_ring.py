"""Key pairs of the clients that a rank hosts, and everybody's public keys."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from fedmpi.comm.collectives import Collectives
from fedmpi.secure.keys import KEY_BYTES, AgreementKey

_RUN_BYTES = 16


class KeyRing:
    """Makes the keys when a run starts or is resumed; they are in no checkpoint.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    renewed : bool
        Whether clients make new keys for each sum, else for the run.

    Attributes
    ----------
    run : bytes
        Drawn by rank 0; every key is bound to it.
    own : dict of int to AgreementKey
        Of the hosted clients.
    public : dict of int to bytes
        Of all clients.
    """

    def __init__(self, collectives: Collectives, hosts: npt.NDArray[np.int64], *, renewed: bool) -> None:
        self._collectives, self._hosts, self._renewed = collectives, hosts, renewed
        drawn = np.frombuffer(secrets.token_bytes(_RUN_BYTES), np.uint8).copy()
        self.run = collectives.bcast(drawn, kind="run number").tobytes()
        self.own: dict[int, AgreementKey] = {}
        self.public: dict[int, bytes] = {}
        self._sums = 0
        self._advertise()

    def begin(self) -> None:
        """Make new keys where each sum has its own (a collective call)."""
        if self._renewed:
            self._advertise()

    def next_sum(self) -> int:
        """Return the number of the next sum; all ranks ask alike."""
        self._sums += 1
        return self._sums

    def _advertise(self) -> None:
        """Make the hosted clients' keys and tell all ranks the public ones; rank 0 relays them."""
        order = np.argsort(self._hosts, kind="stable")
        mine = np.flatnonzero(self._hosts == self._collectives.rank)
        self.own = {int(number): AgreementKey() for number in mine}
        part = np.frombuffer(b"".join(key.public for key in self.own.values()), np.uint8)
        counts = (KEY_BYTES * np.bincount(self._hosts, minlength=self._collectives.size)).tolist()
        pieces = self._collectives.gatherv(part, counts, kind="public keys")
        whole = np.empty((len(self._hosts), KEY_BYTES), np.uint8)
        if pieces is not None:
            whole[order] = np.concatenate(pieces).reshape(-1, KEY_BYTES)
        self._collectives.bcast(whole, kind="public keys")
        self.public = {number: row.tobytes() for number, row in enumerate(whole)}
