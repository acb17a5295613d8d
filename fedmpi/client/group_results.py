"""What a group's training leaves on a device, and what it is to each client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.group_rows import GroupRows
from fedmpi.client.state import two_norm
from fedmpi.client.targets import predicted
from fedmpi.graphs.packed import Int
from fedmpi.kernels.grouped_batches import HostBatch
from fedmpi.models.counts import GraphCounts, ModelFlops
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import Task

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


def norms(rows: Tensor) -> Tensor:
    """Return the 2-norm of each row, float64 [k]."""
    if rows.device.type == "cpu":
        return torch.tensor([two_norm(row) for row in rows], dtype=torch.float64)
    return rows.double().square().sum(dim=1).sqrt()


class Rates:
    """FLOPs of a client's passes. They are linear in examples, nodes and edges, so one product counts all."""

    def __init__(self, flops: ModelFlops, *, training: bool, of_nodes: bool) -> None:
        ones = [GraphCounts(*(int(place == which) for place in range(3))) for which in range(3)]
        if of_nodes:
            ones = [replace(each, examples=each.graphs) for each in ones]
        self._model = np.array([flops.of(each, training).total for each in ones])
        executed = [flops.executed(each, training=training, kernels="grouped") for each in ones]
        self._executed = np.array(executed)

    def of(self, counts: Int, padded: Int) -> list[tuple[int, int]]:
        """Return the FLOPs of k clients, by model and as executed with padding.

        Parameters
        ----------
        counts, padded : int64 [k, 3]
            Examples, nodes and directed edges of all passes together, without padding and with it.
        """
        both = counts @ self._model, padded @ self._executed
        return list(zip(*(each.tolist() for each in both), strict=True))


class Tally:
    """Results of a round's steps of k clients.

    Parameters
    ----------
    clients : int
    task : Task
    batches : sequence of HostBatch
        Of the steps.
    """

    def __init__(self, clients: int, task: Task, batches: Sequence[HostBatch]) -> None:
        self._clients, self._task, self._batches = clients, task, batches

    @cached_property
    def steps(self) -> list[int]:
        """Steps of each client."""
        who = np.concatenate([batch.who for batch in self._batches])
        found: list[int] = np.bincount(who, minlength=self._clients).tolist()
        return found

    def flops(self, rates: Rates) -> list[tuple[int, int]]:
        """Return the FLOPs of each client's steps: see `Rates.of`."""
        who = np.concatenate([batch.who for batch in self._batches])
        plain, padded = (np.zeros((self._clients, 3), np.int64) for _ in range(2))
        np.add.at(plain, who, np.concatenate([batch.counts for batch in self._batches]))
        np.add.at(padded, who, np.concatenate([batch.padded for batch in self._batches]))
        return rates.of(plain, padded)

    def outcomes(self, nats: npt.NDArray[np.float32], found: npt.NDArray[Any]) -> list[Outcome]:
        """Return each client's outcome of its steps, from all examples' losses and what scores them."""
        return outcomes_of(self._task, self._clients, self._batches, nats.astype(np.float64), found)


def outcomes_of(
    task: Task,
    clients: int,
    batches: Sequence[HostBatch],
    nats: npt.NDArray[np.float64],
    found: npt.NDArray[Any],
) -> list[Outcome]:
    """Return each client's outcome of batches, from the losses [n] and `predictions` [n, *] of examples."""
    pieces: list[list[slice]] = [[] for _ in range(clients)]
    known: list[list[Int]] = [[] for _ in range(clients)]
    first = 0
    for batch in batches:
        of_client = np.split(batch.known, np.cumsum(batch.counts[:-1, 0]))
        for place, labels in zip(batch.who, of_client, strict=True):
            pieces[place].append(slice(first, first + len(labels)))
            known[place].append(labels)
            first += batch.sizes.examples
    return [
        _outcome(task, _joined(nats, each), _joined(found, each), labels)
        for each, labels in zip(pieces, known, strict=True)
    ]


def _outcome(
    task: Task, nats: npt.NDArray[np.float64], found: npt.NDArray[Any], known: Sequence[Int]
) -> Outcome:
    if found.dtype == bool:
        return Outcome(nats, found.astype(np.uint8))
    if found.dtype == np.int16:
        right = found >= 0
        return Outcome(nats, right.astype(np.uint8), predicted=np.where(right, found, ~found))
    nothing = np.zeros(len(nats), np.uint8)
    return predicted(task, Outcome(nats, nothing, np.concatenate([*known, _NO_LABELS]), found))


def _joined(values: npt.NDArray[Any], pieces: Sequence[slice]) -> npt.NDArray[Any]:
    return np.concatenate([values[:0], *(values[each] for each in pieces)])
