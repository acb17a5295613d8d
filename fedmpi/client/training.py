"""Step 2 of a round: a rank trains the participants that it hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.client import Client, Training
from fedmpi.client.deltas import Delta, on_host
from fedmpi.client.groups import PendingTraining
from fedmpi.client.states import States
from fedmpi.comm import reductions
from fedmpi.programs.hooks import Hooks

TRAINING = (
    "samples",
    "steps",
    "train_loss",
    "train_accuracy",
    "delta_norm",
    "gradient_norm",
    "model_flops",
    "exponent",
    "finite",
    "wall_s",
    "cpu_s",
)
"""Columns of a client's training report, before the algorithm's own numbers."""

COUNTS = 3
"""Examples seen, sum of their losses in `LOSS_UNIT`, right predictions."""

LOSS_UNIT = 2.0**-20
"""What one stands for in a figure that is a sum of losses."""

MOST = 2**60
"""A figure is less."""


@dataclass(frozen=True)
class Trained:
    """Results of a rank's clients in a round.

    Attributes
    ----------
    deltas : dict of client to float32 [shared]
        Updates of the participants, or their models if the algorithm averages these.
    rows : float64 [hosted clients, columns]
        NaN for clients that did not train.
    reports : uint8 [hosted clients * report size]
        The clients' reports for the algorithm; 0 for clients that did not train.
    executed_flops : int
    counts : dict of client to list of float
        What is summed over clients where no single value is recorded: see `COUNTS`.
    """

    deltas: dict[int, Delta]
    rows: npt.NDArray[np.float64]
    reports: npt.NDArray[np.uint8]
    executed_flops: int
    counts: dict[int, list[float]]

    def joined(self, other: Trained) -> Trained:
        """Return the results of both, of different clients; rows of `other` are those that are not NaN."""
        rows, there = self.rows.copy(), ~np.isnan(other.rows).all(axis=1)
        rows[there] = other.rows[there]
        shape = len(rows), len(self.reports) // max(len(rows), 1)
        reports = self.reports.reshape(shape).copy()
        reports[there] = other.reports.reshape(shape)[there]
        deltas, counts = {**self.deltas, **other.deltas}, {**self.counts, **other.counts}
        executed = self.executed_flops + other.executed_flops
        return Trained(deltas, rows, reports.reshape(-1), executed, counts)


def columns_of(algorithm: Hooks) -> tuple[str, ...]:
    """Return the columns of a client's training report."""
    return (*TRAINING, *algorithm.numbers)


def _secret_columns(algorithm: Hooks) -> list[int]:
    """Return the columns that say something of an update; groups that split need its norm."""
    names = ["exponent"] if "splits" in algorithm.decides else ["exponent", "delta_norm"]
    return [TRAINING.index(name) for name in names]


def heaviest(algorithm: Hooks, client: Client, weights: npt.NDArray[np.int64]) -> int:
    """Return what a client's delta is multiplied by, at most; weights from reports are not known yet."""
    return 1 if "weights" in algorithm.decides else max(client.weight, int(weights[client.id]))


def train(
    case: Case,
    algorithm: Hooks,
    states: States,
    round: int,
    participants: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int64],
    on_device: bool,
    meanwhile: Callable[[], None] | None = None,
) -> Trained:
    """Train the hosted participants, one after another or group by group; deltas may stay on the device.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    states : States
        Clients that this rank hosts.
    round : int
        0-based.
    participants : int64 [*]
        Numbers of the round's clients, of all ranks.
    weights : int64 [clients]
        Aggregation weights of all clients.
    on_device : bool
        Leave deltas on the device instead of copying them to the host.
    meanwhile : callable, optional
        Called when all asynchronous groups are started, and none of them is awaited.
    """
    width = len(columns_of(algorithm))
    rows = np.full((len(states.clients), width), np.nan)
    reports = np.zeros((len(states.clients), states.messages.nbytes), np.uint8)
    deltas, counts, executed = {}, {}, 0
    chosen = set(participants.tolist())
    places = {number: place for place, number in enumerate(states.clients)}
    for pending in _started(case, algorithm, states, round, chosen, meanwhile):
        for number, done in pending().items():
            client, place = states.clients[number], places[number]
            bound = heaviest(algorithm, client, weights)
            deltas[number], row = done.sends if on_device else on_host(done.sends), _row(done, bound)
            rows[place] = [*row, *done.numbers]
            if case.reduction.secret:
                rows[place, _secret_columns(algorithm)] = np.nan
            if case.record == "protocol":
                losses = done.loss * done.samples / LOSS_UNIT
                rows[place, [name != "finite" for name in TRAINING]] = np.nan
                if not losses < MOST:  # no sum can hold it: the run has diverged
                    rows[place, TRAINING.index("finite")] = losses = 0.0
                counts[number] = [done.samples, losses, done.accuracy * done.samples]
            reports[place] = done.report
            executed += done.executed_flops
    return Trained(deltas, rows, reports.reshape(-1), executed, counts)


def _started(
    case: Case,
    algorithm: Hooks,
    states: States,
    round: int,
    chosen: set[int],
    meanwhile: Callable[[], None] | None,
) -> Iterator[PendingTraining]:
    """Yield for each group a call that returns its results.

    Asynchronous groups are all started before the result of any is awaited, the longest first.
    """
    waiting: list[PendingTraining] = []
    for group in sorted(states.groups, key=lambda group: -group.length):
        algorithm.where.client = min((c.id for c in group.clients if c.id in chosen), default=-1)
        started = group.train(case, algorithm, round, chosen)
        if group.asynchronous:
            waiting.append(started)
        else:
            yield started
    if waiting and meanwhile is not None:
        meanwhile()
    yield from waiting


def _row(done: Training, heaviest: int) -> list[float]:
    """Return a trained client's row of the training table."""
    finite = done.finite and all(map(math.isfinite, [done.loss, done.norm, *done.numbers]))
    largest = np.array([done.largest], np.float32)
    exponent = reductions.weighted_exponent(largest, heaviest) if finite else 0  # bounds weight 1 too
    row = [done.samples, done.steps, done.loss, done.accuracy, done.norm, done.gradient_norm]
    return [*row, done.model_flops, exponent, finite, done.wall_s, done.cpu_s]
