"""The protocols by what a round asks of them: parties, sizes of messages, how uploads are added."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.secure import lightsecagg, neighbours, secagg, shamir
from fedmpi.secure.field import PRIME
from fedmpi.secure.keys import KEY_BYTES, SEAL_BYTES, AgreementKey
from fedmpi.secure.lightsecagg import Code
from fedmpi.secure.masks import Stretcher
from fedmpi.secure.neighbours import Degree, exactly
from fedmpi.secure.roster import Roster

Summand = npt.NDArray[np.int32]
Vector = npt.NDArray[Any]
Client = secagg.Client | lightsecagg.Client


class SecAgg:
    """SecAgg, and with a `degree` SecAgg+.

    Parameters
    ----------
    size : int
        Elements of a vector.
    threshold : float
        Share of the circle (a client and its neighbours) that must stay: more than that many of it.
    degree : int, optional
        Neighbours of each client, even; all others by default, and where a group has no more.

    Attributes
    ----------
    dtype : type
        Of an upload.
    """

    dtype: ClassVar[Any] = np.uint32

    def __init__(self, size: int, threshold: float, degree: int = 0) -> None:
        self._stretcher, self._threshold, self._degree = Stretcher(size), threshold, degree

    def roster(self, run: bytes, number: int, group: int, order: Sequence[int]) -> Roster:
        """Return who takes part in a sum; `order` holds its clients in a secret random order."""
        members = tuple(sorted(order))
        ring = 0 < self._degree < len(members) - 1
        circles = neighbours.ring(order, self._degree) if ring else neighbours.everybody(members)
        degree = Degree.of(self._degree if ring else len(members) - 1, self._threshold)
        return Roster(run, number, group, members, circles, degree.threshold)

    def client(
        self, number: int, key: AgreementKey, public: Mapping[int, bytes], roster: Roster
    ) -> secagg.Client:
        """Return a client's side of a sum."""
        return secagg.Client(number, key, public, roster, self._stretcher)

    def server(self, roster: Roster, vaults: Mapping[int, bytes]) -> secagg.Server:
        """Return the server's side of a sum."""
        return secagg.Server(roster, vaults, self._stretcher)

    def add(self, upload: Vector, total: Vector) -> None:
        """Add modulo 2^32."""
        np.add(total, upload, out=total)

    def sealed_bytes(self, roster: Roster) -> int:
        """Return the bytes of a message between neighbours."""
        return 2 * shamir.SHARE_BYTES + SEAL_BYTES

    def vault_bytes(self, roster: Roster, client: int) -> int:
        """Return the bytes that a client sends the server with it."""
        return KEY_BYTES * len(roster.neighbours[client]) + SEAL_BYTES

    def answer_bytes(self, roster: Roster, client: int, sharers: Collection[int]) -> int:
        """Return the bytes of a client's answer, where the clients `sharers` shared their secrets."""
        return shamir.SHARE_BYTES * (len(roster.partners(client, sharers)) + 1)


class LightSecAgg:
    """LightSecAgg.

    Parameters
    ----------
    size : int
        Elements of a vector.
    threshold : float
        Share of a group that must stay, U/N.
    colluders : float
        Share that may work with the server, T/N; below the threshold.
    """

    dtype: ClassVar[Any] = np.uint64

    def __init__(self, size: int, threshold: float, colluders: float) -> None:
        self._size, self._threshold, self._colluders = size, threshold, colluders

    def roster(self, run: bytes, number: int, group: int, order: Sequence[int]) -> Roster:
        """See `SecAgg`."""
        members = tuple(sorted(order))
        least = max(math.ceil(exactly(self._threshold) * len(members)), 2)
        return Roster(run, number, group, members, neighbours.everybody(members), least)

    def _code(self, roster: Roster) -> Code:
        colluders = min(math.floor(exactly(self._colluders) * len(roster.members)), roster.threshold - 1)
        return Code(self._size, colluders, roster.threshold)

    def client(
        self, number: int, key: AgreementKey, public: Mapping[int, bytes], roster: Roster
    ) -> lightsecagg.Client:
        """See `SecAgg`."""
        return lightsecagg.Client(number, key, public, roster, self._code(roster))

    def server(self, roster: Roster, vaults: Mapping[int, bytes]) -> lightsecagg.Server:
        """See `SecAgg`."""
        return lightsecagg.Server(roster, self._code(roster))

    def add(self, upload: Vector, total: Vector) -> None:
        """Add modulo the prime, below which both are."""
        np.add(total, upload, out=total)
        np.minimum(total, total - np.uint64(PRIME), out=total)  # what is below the prime wraps: the larger

    def sealed_bytes(self, roster: Roster) -> int:
        """See `SecAgg`."""
        return 4 * self._code(roster).piece + SEAL_BYTES

    def vault_bytes(self, roster: Roster, client: int) -> int:
        """See `SecAgg`; nothing goes to the server."""
        return 0

    def answer_bytes(self, roster: Roster, client: int, sharers: Collection[int]) -> int:
        """See `SecAgg`."""
        return 4 * self._code(roster).piece


SecureSum = SecAgg | LightSecAgg
"""A protocol for vectors of one size."""
