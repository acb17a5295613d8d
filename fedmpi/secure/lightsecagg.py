"""LightSecAgg (So et al. 2022): one mask per client, coded so that the sum of masks is recovered in one shot.

Client i draws a mask ``z_i`` in F_p^d, cuts it into U - T pieces, appends T random ones, and sends the
value at place j of the polynomial through these U pieces to client j. The server has the sum of
``x_i + z_i``; any U clients that send the sum of what they hold of the survivors give it the sum of
``z_i``. T clients together with the server learn nothing of a single mask. No place of a client is that
of a piece.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.secure.field import PRIME, Elements, interpolation, product, random_elements
from fedmpi.secure.keys import AgreementKey, seal, unseal
from fedmpi.secure.roster import Refused, Roster, TooFew

Summand = npt.NDArray[np.int32]
Sum = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Code:
    """How masks of `size` elements are cut; the roster's threshold is U.

    Attributes
    ----------
    size : int
    colluders : int
        T, of the clients that may work together with the server; below the threshold.
    threshold : int
    """

    size: int
    colluders: int
    threshold: int

    def __post_init__(self) -> None:
        assert 0 <= self.colluders < self.threshold

    @property
    def pieces(self) -> int:
        """Pieces of a mask, U - T."""
        return self.threshold - self.colluders

    @property
    def piece(self) -> int:
        """Elements of a piece: the size over the number of pieces, rounded up."""
        return -(-self.size // self.pieces)

    def places(self, members: int) -> range:
        """Return the places of the U pieces, behind those of the members."""
        return range(members + 1, members + 1 + self.threshold)


class Client:
    """One client's side of a sum.

    Parameters
    ----------
    number : int
    key : AgreementKey
        Its own.
    public : mapping of int to bytes
        Public key of each member.
    roster : Roster
    code : Code
    """

    def __init__(
        self, number: int, key: AgreementKey, public: Mapping[int, bytes], roster: Roster, code: Code
    ) -> None:
        self.number, self._roster, self._code = number, roster, code
        self._channels = {
            other: key.agreed(public[other], roster.purpose("pieces", min(number, other), max(number, other)))
            for other in roster.neighbours[number]
        }
        self._mask = random_elements(code.pieces * code.piece)
        self._held: dict[int, Elements] = {}
        self._answered = False

    def offer(self) -> tuple[dict[int, bytes], bytes]:
        """Return the sealed pieces by neighbour; the server gets nothing in this step."""
        code, roster, me = self._code, self._roster, self.number
        noise = random_elements(code.colluders * code.piece)
        whole = np.concatenate([self._mask, noise]).reshape(code.threshold, code.piece)
        wanted = [roster.place(other) for other in roster.members]
        coded = product(interpolation(code.places(len(roster.members)), wanted), whole)
        values = dict(zip(roster.members, coded, strict=True))
        self._held[me] = values.pop(me)
        sealed = {
            other: seal(self._channels[other], piece.tobytes(), roster.purpose("pieces", me, other))
            for other, piece in values.items()
        }
        return sealed, b""

    def accept(self, sealed: Mapping[int, bytes]) -> None:
        """Take the pieces of those that sent theirs.

        Raises
        ------
        Tampered
            A message is not what the other client sent.
        TooFew
            Fewer than the threshold did, itself included.
        """
        if len(sealed) + 1 < self._roster.threshold:
            raise TooFew(f"{len(sealed) + 1} of {self._roster.threshold} clients shared their masks")
        for other, message in sealed.items():
            purpose = self._roster.purpose("pieces", other, self.number)
            self._held[other] = np.frombuffer(unseal(self._channels[other], message, purpose), np.uint32)

    def upload(self, summand: Summand) -> Sum:
        """Return the masked summand, elements of the field, uint64 [size]."""
        total = summand.astype(np.int64)
        total += self._mask[: self._code.size]
        total += (total >> 63) & PRIME
        masked: Sum = total.view(np.uint64)
        np.minimum(masked, masked - np.uint64(PRIME), out=masked)  # what is below PRIME wraps: the larger
        return masked

    def answer(self, survivors: Collection[int]) -> bytes:
        """Return the sum of what it holds of the survivors' masks.

        Raises
        ------
        Refused
            It was asked before in this sum: two sums would give a single client's mask.
        TooFew
            Too few survived.
        """
        if self._answered or self.number not in survivors or not set(survivors) <= set(self._held):
            raise Refused(f"client {self.number} reveals one sum of masks")
        if len(survivors) < self._roster.threshold:
            raise TooFew(f"{len(survivors)} of {self._roster.threshold} clients are left")
        self._answered = True
        total = np.zeros(self._code.piece, np.uint64)
        for other in survivors:
            total += self._held[other]
        return (total % PRIME).astype(np.uint32).tobytes()


class Server:
    """The server's side of a sum."""

    def __init__(self, roster: Roster, code: Code) -> None:
        self._roster, self._code = roster, code

    def unmask(self, total: Sum, survivors: Collection[int], answers: Mapping[int, bytes]) -> Summand:
        """Return the sum of the survivors' summands, int32 [size].

        Parameters
        ----------
        total : uint64 [size]
            Sum of their uploads, not reduced.
        survivors : collection of int
            Clients whose uploads it holds.
        answers : mapping of int to bytes
            Of those that answered.

        Raises
        ------
        TooFew
            Fewer answered than the threshold.
        """
        code, roster = self._code, self._roster
        if len(answers) < code.threshold:
            raise TooFew(f"{len(answers)} of {code.threshold} clients answered")
        used = sorted(answers)[: code.threshold]
        values = np.stack([np.frombuffer(answers[client], np.uint32) for client in used])
        wanted = code.places(len(roster.members))[: code.pieces]
        masks = product(interpolation([roster.place(client) for client in used], wanted), values)
        mask = masks.reshape(-1)[: code.size].astype(np.int64)
        plain = np.mod((total % PRIME).astype(np.int64) - mask, PRIME)
        summed: Summand = np.where(plain > PRIME // 2, plain - PRIME, plain).astype(np.int32)
        return summed
