"""What a group's training leaves on a device, and what it is to each client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.group_steps import GroupRows
from fedmpi.client.state import two_norm
from fedmpi.client.targets import predicted
from fedmpi.graphs.packed import Int
from fedmpi.graphs.transfer import Fetched
from fedmpi.kernels.grouped_batches import HostBatch
from fedmpi.models.counts import GraphCounts, ModelFlops
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import Task

Counts = Sequence[int]
"""Graphs, nodes and directed edges."""

_NO_LABELS: Int = np.zeros(0, np.int64)


def finite(rows: GroupRows) -> Tensor:
    """Return whether each client's parameters and moments hold neither NaN nor infinity, bool [k]."""
    matrices = (rows.parameters, rows.mean, rows.square)
    if rows.parameters.device.type == "cpu":  # where torch's search for ends is slow
        norms = [[two_norm(row) for row in each] for each in matrices]
        return torch.isfinite(torch.tensor(norms)).all(dim=0)
    return finite_ends(matrices)


def finite_ends(matrices: tuple[Tensor, ...]) -> Tensor:
    """Return whether the least and the largest number of each row of all matrices are finite, bool [k]."""
    ends = [end for each in matrices for end in torch.aminmax(each, dim=1)]
    return torch.isfinite(torch.stack(ends)).all(dim=0)


def flops_of(flops: ModelFlops, counts: Counts, padded: Counts, *, training: bool) -> tuple[int, int]:
    """Return the FLOPs of a client's passes, by model and as executed with padding.

    Both are proportional to graphs, nodes and edges, so that one call serves the passes of a round.

    Parameters
    ----------
    flops : ModelFlops
    counts, padded : list of int
        Graphs, nodes and directed edges of all passes together, without padding and with it.
    training : bool
    """
    found = flops.training(GraphCounts(*counts)) if training else flops.forward(GraphCounts(*counts))
    return found.total, flops.executed(GraphCounts(*padded), training=training, kernels="grouped")


class Tally:
    """Results of the steps of k clients; they stay on the device until `fetch`."""

    def __init__(self, clients: int, task: Task) -> None:
        self._task = task
        self.steps = [0] * clients
        self._batches: list[HostBatch] = []
        self._losses: list[Tensor] = []
        self._found: list[Tensor] = []
        self._fetched: list[Fetched] = []

    def add(self, batch: HostBatch, nats: Tensor, found: Tensor) -> None:
        """Take note of a step of k clients: losses [k, B], and what graphs are scored by."""
        for place in batch.who:
            self.steps[place] += 1
        self._batches.append(batch)
        self._losses.append(nats)
        self._found.append(found)

    def flops(self, of: ModelFlops) -> list[tuple[int, int]]:
        """Return the FLOPs of each client's steps: see `flops_of`."""
        who = np.concatenate([batch.who for batch in self._batches])
        plain, padded = (np.zeros((len(self.steps), 3), np.int64) for _ in range(2))
        np.add.at(plain, who, np.concatenate([batch.counts for batch in self._batches]))
        np.add.at(padded, who, np.concatenate([batch.padded for batch in self._batches]))
        both = zip(plain.tolist(), padded.tolist(), strict=True)
        return [flops_of(of, *each, training=True) for each in both]

    def fetch(self) -> None:
        """Send all losses and what graphs are scored by on their way to the host."""
        self._fetched = [
            Fetched(torch.cat([each.flatten(0, 1) for each in of])) for of in (self._losses, self._found)
        ]

    def outcomes(self) -> list[Outcome]:
        """Return each client's outcome of all its steps; waits for the device."""
        nats, found = (each.get() for each in self._fetched)
        return outcomes_of(self._task, len(self.steps), self._batches, nats.astype(np.float64), found)


def outcomes_of(
    task: Task,
    clients: int,
    batches: Sequence[HostBatch],
    nats: npt.NDArray[np.float64],
    found: npt.NDArray[Any],
) -> list[Outcome]:
    """Return each client's outcome of batches, from the graphs' losses [n] and their `predictions` [n, *]."""
    pieces: list[list[slice]] = [[] for _ in range(clients)]
    known: list[list[Int]] = [[] for _ in range(clients)]
    first = 0
    for batch in batches:
        of_client = np.split(batch.known, np.cumsum(batch.counts[:-1, 0]))
        for place, labels in zip(batch.who, of_client, strict=True):
            pieces[place].append(slice(first, first + len(labels)))
            known[place].append(labels)
            first += batch.sizes.graphs
    return [
        _outcome(task, _joined(nats, each), _joined(found, each), labels)
        for each, labels in zip(pieces, known, strict=True)
    ]


def _outcome(
    task: Task, nats: npt.NDArray[np.float64], found: npt.NDArray[Any], known: Sequence[Int]
) -> Outcome:
    if found.dtype == bool:
        return Outcome(nats, found.astype(np.uint8))
    nothing = np.zeros(len(nats), np.uint8)
    return predicted(task, Outcome(nats, nothing, np.concatenate([*known, _NO_LABELS]), found))


def _joined(values: npt.NDArray[Any], pieces: Sequence[slice]) -> npt.NDArray[Any]:
    return np.concatenate([values[:0], *(values[each] for each in pieces)])
