"""Who takes part in one secure sum, and what every party is told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedmpi.secure.keys import Purpose


class TooFew(Exception):
    """Fewer clients answered than the threshold asks: the sum cannot be had, and nothing was revealed."""


class Refused(Exception):
    """A client was asked for what would reveal its update or a neighbour's, and said no."""


@dataclass(frozen=True)
class Roster:
    """The parties of one sum; the same for all of them.

    Attributes
    ----------
    run : bytes
        Drawn anew at every start of a run.
    number, group : int
        Of the sum in the run, and of the group whose sum it is.
    members : tuple of int
        Clients, ascending.
    neighbours : mapping of int to sequence of int
        With whom each member shares masks and secrets, itself left out; symmetric.
    threshold : int
        Shares that recover a secret, and clients that must answer.
    """

    run: bytes
    number: int
    group: int
    members: tuple[int, ...]
    neighbours: Mapping[int, Sequence[int]]
    threshold: int

    def purpose(self, use: str, sender: int, receiver: int) -> Purpose:
        """Return what a key or message of this sum is bound to."""
        return Purpose(self.run, use, self.number, self.group, sender, receiver)

    def circle(self, client: int) -> list[int]:
        """Return a client and its neighbours, ascending."""
        return sorted([client, *self.neighbours[client]])

    def place(self, client: int) -> int:
        """Return where a client's shares are evaluated, from 1."""
        return self.members.index(client) + 1

    def partners(self, client: int, among: Iterable[int]) -> list[int]:
        """Return the neighbours of a client among some clients, ascending."""
        return sorted(set(self.neighbours[client]) & set(among))

    def is_enough(self, client: int, among: Iterable[int]) -> bool:
        """Return whether a client and its neighbours among some clients are as many as the threshold asks."""
        return len(self.partners(client, among)) + 1 >= self.threshold

    def can_answer(self, client: int, survivors: Collection[int]) -> bool:
        """Return whether a client answers: enough survivors are near, or none is and it helps from apart."""
        if client in survivors or self.partners(client, survivors):
            return client in survivors and self.is_enough(client, survivors)
        return len(survivors) >= self.threshold

    def joined(self, among: Iterable[int]) -> list[int]:
        """Return the largest part of some clients that masks join, ascending; of equal parts the first.

        Nobody else may be in their sum: without common masks the sum of each part could be had apart.
        """
        left = set(among)
        if len(self.neighbours[self.members[0]]) == len(self.members) - 1:
            return sorted(left)
        largest: set[int] = set()
        while left:
            part = front = {min(left)}
            while front:
                left -= front
                front = {other for client in front for other in self.neighbours[client]} & left
                part = part | front
            largest = max(largest, part, key=len)
        return sorted(largest)

    def is_connected(self, among: Collection[int]) -> bool:
        """Return whether some clients are joined by masks."""
        return len(self.joined(among)) == len(among)
