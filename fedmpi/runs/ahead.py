"""Training ahead of need: ranks that would wait train clients whose updates later steps use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.client.states import States
from fedmpi.client.training import Trained
from fedmpi.exchange.schedule import Schedule

Ints = npt.NDArray[np.int64]
Train = Callable[[int, Ints], Trained]
"""Trains hosted ones of these clients, int64 [k], as participants of a round (0-based)."""


@dataclass(frozen=True)
class _Done:
    """What came of a client's training: what it sends, and what it is afterwards."""

    trained: Trained
    state: npt.NDArray[np.float32]


class Ahead:
    """Keeps the ranks busy where a step uses the updates of a few.

    Who trains when is the same on every rank, and changes no result: what a client trains from, and all
    random numbers, are known when it begins. A client is as it was until the step that uses its update,
    so checkpoints know nothing of what was done ahead; a run that goes on does it again.

    Parameters
    ----------
    schedule : Schedule
    states : States
        Of the clients that this rank hosts.
    train : callable
    ranks : int
    """

    def __init__(self, schedule: Schedule, states: States, train: Train, ranks: int) -> None:
        self._schedule, self._states, self._train, self._ranks = schedule, states, train, ranks
        self._done: dict[int, _Done] = {}
        self._ahead: set[int] = set()

    def train(self, round: int, participants: Ints) -> Trained:
        """Return what the hosted participants of a step send; others are trained beside, where ranks wait.

        Executed FLOPs are those of what was trained now.
        """
        hosts = self._states.hosts
        needed = np.array([client for client in participants.tolist() if client not in self._ahead], np.int64)
        most = np.bincount(hosts[needed], minlength=self._ranks).max(initial=0)
        found = self._train(round, needed)
        executed = found.executed_flops
        for client in participants.tolist():
            if client in self._done:
                done = self._done.pop(client)
                self._states.restore({client: done.state})
                _join(found, done.trained, list(self._states.clients).index(client))
        for later, client in self._waiting(needed, participants, int(most)):
            if client in self._states.clients:
                executed += self._prepare(later, client)
        self._ahead -= set(participants.tolist())
        return Trained(found.deltas, found.rows, found.reports, executed, found.counts)

    def _waiting(self, needed: Ints, participants: Ints, most: int) -> list[tuple[int, int]]:
        """Return whom ranks train beside, with the steps that use them: none trains more than the busiest."""
        free = most - np.bincount(self._states.hosts[needed], minlength=self._ranks)
        found = []
        for later, client in self._schedule.under_way():
            rank = int(self._states.hosts[client])
            if client not in self._ahead and free[rank] > 0:
                free[rank] -= 1
                self._ahead.add(client)
                found.append((later, client))
        return found

    def _prepare(self, later: int, client: int) -> int:
        """Train a client for a later step, leave it as it was, and return the FLOPs."""
        before = self._states.saved_of(client)
        self._schedule.receive(client)
        trained = self._train(later, np.array([client]))
        self._done[client] = _Done(trained, self._states.saved_of(client))
        self._states.restore({client: before})
        return trained.executed_flops


def _join(found: Trained, other: Trained, place: int) -> None:
    """Add what one client sends to what others do; `place` is that of its row."""
    found.deltas.update(other.deltas)
    found.counts.update(other.counts)
    found.rows[place] = other.rows[place]
    width = len(found.reports) // len(found.rows)
    cut = slice(place * width, (place + 1) * width)
    found.reports[cut] = other.reports[cut]
