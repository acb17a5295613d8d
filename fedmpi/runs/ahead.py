"""Training ahead of need: ranks that would wait train clients whose updates later steps use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fedmpi.client.states import States
from fedmpi.client.training import Trained
from fedmpi.exchange.schedule import Schedule

Ints = npt.NDArray[np.int64]
Train = Callable[[Ints, Ints], Trained]
"""Trains hosted ones of these clients, int64 [k], each as a participant of a round (0-based), int64 [k]."""


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

    def train(self, participants: Ints) -> Trained:
        """Return what the hosted participants of the step send; others are trained beside, where ranks wait.

        Executed FLOPs are those of what was trained now.
        """
        hosts = self._states.hosts
        needed = np.array([client for client in participants.tolist() if client not in self._ahead], np.int64)
        most = np.bincount(hosts[needed], minlength=self._ranks).max(initial=0)
        found = self._train(self._schedule.streams(needed), needed)
        executed = found.executed_flops
        for client in participants.tolist():
            if client in self._done:
                done = self._done.pop(client)
                self._states.restore({client: done.state})
                found = found.joined(done.trained)
        for stream, client in self._waiting(needed, int(most)):
            if client in self._states.clients:
                executed += self._prepare(stream, client)
        self._ahead -= set(participants.tolist())
        return replace(found, executed_flops=executed)

    def _waiting(self, needed: Ints, most: int) -> list[tuple[int, int]]:
        """Return whom ranks train beside, with their rounds: none trains more than the busiest rank."""
        free = most - np.bincount(self._states.hosts[needed], minlength=self._ranks)
        found = []
        for stream, client in self._schedule.under_way():
            rank = int(self._states.hosts[client])
            if client not in self._ahead and free[rank] > 0:
                free[rank] -= 1
                self._ahead.add(client)
                found.append((stream, client))
        return found

    def _prepare(self, stream: int, client: int) -> int:
        """Train a client for a later step, leave it as it was, and return the FLOPs."""
        before = self._states.saved_of(client)
        self._schedule.receive(client)
        trained = self._train(np.array([stream]), np.array([client]))
        self._done[client] = _Done(trained, self._states.saved_of(client))
        self._states.restore({client: before})
        return trained.executed_flops
