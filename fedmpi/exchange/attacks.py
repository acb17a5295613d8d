"""Clients that attack: who they are, and those that send other updates than they trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.recorded import field
from fedmpi.case.attacks import Colluding, NoAttack, Noise, SignFlip, UpdateAttack
from fedmpi.case.schema import Case
from fedmpi.client.deltas import Row
from fedmpi.errors import BadInput
from fedmpi.exchange.link import Link
from fedmpi.exchange.noise import Uniforms, gaussian
from fedmpi.seeds import Purpose
from fedmpi.store.schema import Field

if TYPE_CHECKING:  # what is refused before MPI starts must not import it
    from fedmpi.comm.collectives import Collectives
    from fedmpi.exchange.updates import Updates

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ATTACKER = field("attacker", "1 if the client is an attacker, in rounds without an attack too", dtype="u1")


def refuse_unfit(case: Case, num_clients: int) -> None:
    """Raise BadInput for attackers that the federation does not have, or that leave no benign client."""
    chosen = case.attack.attackers(case.seed, num_clients)
    if len(chosen) and chosen[-1] >= num_clients:
        raise BadInput(f"attack.clients: there is no client {chosen[-1]}: they are 0 to {num_clients - 1}")
    if len(chosen) == num_clients:
        raise BadInput(f"attack: all {num_clients} clients attack: leave one benign, or more")


class Attackers(Link):
    """The attackers of a run.

    Parameters
    ----------
    case : Case
    hosts : int64 [clients]
        Rank of each client.
    collectives : Collectives
        By which attackers on several ranks tell each other their updates.
    size : int
        Parameters of an update.
    """

    phase: ClassVar[str] = "communicate"  # attackers may wait for each other

    def __init__(self, case: Case, hosts: Ints, collectives: Collectives, size: int) -> None:
        self._options, self._seed = case.attack, case.seed
        self._hosts, self._collectives, self._size = hosts, collectives, size
        self.clients = case.attack.attackers(case.seed, len(hosts))

    @classmethod
    def fields(cls, case: Case) -> tuple[Field, ...]:
        """Return the field of attackers, where there are some."""
        return () if isinstance(case.attack, NoAttack) else (ATTACKER,)

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the values of the record's field."""
        if isinstance(self._options, NoAttack):
            return {}
        return {ATTACKER.name: np.isin(np.arange(len(self._hosts)), self.clients).astype(np.uint8)}

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Replace the attackers' updates, where this is a round of an attack on them (a collective call).

        Parameters
        ----------
        round : int
            From 0.
        participants : int64 [k]
        updates : Updates
            Changed in place.
        """
        options = self._options
        if not isinstance(options, UpdateAttack) or not options.due(round):
            return
        chosen = np.intersect1d(self.clients, participants)
        own = {client: updates.change(client) for client in updates.clients() if client in chosen}
        known = self._exchanged(own, chosen) if options.together else own
        send = _SENT[type(options)]
        for client in own:
            stream = Uniforms(self._seed, Purpose.ATTACK, options.seed, round, client)
            updates.replace(client, send(options, own[client], known, stream))

    def _exchanged(self, own: Mapping[int, Row], chosen: Ints) -> dict[int, Row]:
        """Return the attackers' updates on the ranks that host some; each such rank sends to all others."""
        ranks = range(self._collectives.size)
        held = [chosen[self._hosts[chosen] == rank] for rank in ranks]
        mine = np.concatenate([np.zeros(0, np.float32), *(own[client] for client in sorted(own))])
        parts = [mine.view(np.uint8) if len(clients) else np.zeros(0, np.uint8) for clients in held]
        width = 4 * self._size if own else 0
        texts = self._collectives.alltoallv(parts, [len(clients) * width for clients in held])
        if not own:
            return {}
        rows = [row for text in texts for row in text.view(np.float32).reshape(-1, self._size)]
        return dict(zip(np.concatenate(held).tolist(), rows, strict=True))


def _flipped(options: SignFlip, change: Row, known: Mapping[int, Row], stream: Uniforms) -> Floats:
    return -options.scale * change.astype(np.float64)


def _noisy(options: Noise, change: Row, known: Mapping[int, Row], stream: Uniforms) -> Floats:
    wide = change.astype(np.float64)
    mean_square = np.sum(np.square(wide)) / len(wide)
    noisy: Floats = wide + options.scale * np.sqrt(mean_square) * gaussian(stream, len(wide))
    return noisy


def _common(options: Colluding, change: Row, known: Mapping[int, Row], stream: Uniforms) -> Floats:
    rows = np.stack([known[client] for client in sorted(known)]).astype(np.float64)
    mean: Floats = np.add.reduce(rows, axis=0) / len(rows)
    return -options.scale * mean


_SENT: dict[type, Callable[[Any, Row, Mapping[int, Row], Uniforms], Floats]] = {
    SignFlip: _flipped,
    Noise: _noisy,
    Colluding: _common,
}
"""What an attacker sends, from its own update, those of the attackers that it knows, and its noise."""
