"""How far clients without a server are from each other, and how good the mean of their models is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.case.reductions import ExactOptions
from fedmpi.case.schema import Case
from fedmpi.client.deltas import Delta, Row, on_host
from fedmpi.client.states import States
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Buffers, Plain
from fedmpi.exchange.codes import mean_on_all
from fedmpi.exchange.messages import EVALUATION, ClientTable, Floats, Gathered, Ints
from fedmpi.exchange.meter import Meter
from fedmpi.kernels.vectors import squared_norm
from fedmpi.runs.evaluation import Evaluator, scores_of
from fedmpi.store.schema import GOSSIP, MEAN_MODEL, Field
from fedmpi.tasks.base import Task

_SCORES = EVALUATION[:4]

Rows = dict[str, npt.NDArray[Any]]


def fields_of(case: Case, task: Task) -> tuple[Field, ...]:
    """Return the fields of a record without a server; none with one."""
    if not case.topology.gossips:
        return ()
    scores = [each for each in task.fields if _is_score(each)]
    text = "{}; with the mean of all clients' models in its model's place"
    return (
        *GOSSIP,
        *(replace(each, name=MEAN_MODEL + each.name, meaning=text.format(each.meaning)) for each in scores),
    )


def _is_score(field: Field) -> bool:
    """Return whether a field of a task is of held-out examples, by client or by round."""
    return not field.name.startswith("train_") and field.axes[1:] in ((), ("client",))


class Consensus:
    """Measures the distance of models from their mean in each round; scores the mean where models are scored.

    The mean takes collectives of its own, beside those by which clients average.

    Parameters
    ----------
    world : World
    states : States
    meter : Meter
    evaluator : Evaluator
        Which clients are scored, and when.
    """

    def __init__(self, world: World, states: States, meter: Meter, evaluator: Evaluator) -> None:
        self._states, self._meter, self._evaluator = states, meter, evaluator
        self._collectives, self._task = world.collectives, evaluator.task
        self._everybody = np.arange(len(states.hosts))
        self._sums = Plain(world.collectives, states.hosts, ExactOptions(), states.size, Buffers())
        columns, lengths = ("distance", *_SCORES), self._task.lengths
        self._table = ClientTable(world.collectives, states.hosts, columns, header=0, flags=lengths)
        self._names = [each.name for each in self._task.fields if _is_score(each)]

    def run(self, round: int, participants: Ints, models: Mapping[int, Delta]) -> Rows:
        """Return the values of the record's fields on rank 0; nothing elsewhere (a collective call).

        Parameters
        ----------
        round : int
            0-based.
        participants : int64 [k]
        models : mapping of int to float32 [shared]
            Of the clients that this rank hosts; they have them.
        """
        held = {number: on_host(model) for number, model in models.items()}
        with self._meter.phase("communicate"):
            mean = self._mean(held)
        rows = np.full((len(held), 1 + len(_SCORES)), np.nan)
        rows[:, 0] = [squared_norm(model - mean) for model in held.values()]
        outcomes = {}
        if self._evaluator.is_due(round):
            with self._meter.phase("evaluate"):
                outcomes = self._scored(mean, held, self._evaluator.chosen(participants))
        for place, number in enumerate(held):
            if number in outcomes:
                rows[place, 1:] = scores_of(outcomes[number])
                self._meter.executed_flops += outcomes[number].executed_flops
        single = [self._task.pack(number, outcomes.get(number)) for number in held]
        flags = np.concatenate([np.zeros(0, np.uint8), *single])
        with self._meter.phase("wait"):
            gathered = self._table.gather([], rows, flags, "mean model")
        if gathered is None:
            return {}
        with self._meter.phase("evaluate"):
            return self._rows(gathered)

    def _mean(self, models: Mapping[int, Row]) -> Row:
        """Return the mean of all clients' models, float32 [shared], on every rank.

        What is not finite counts as 0: the scores of its client end the run.
        """
        ones = np.ones_like(self._everybody)
        finite = {n: np.nan_to_num(model, nan=0.0, posinf=0.0, neginf=0.0) for n, model in models.items()}
        args = self._collectives, self._sums, self._everybody, ones, finite, self._states.size
        return mean_on_all(*args).astype(np.float32)

    def _scored(self, mean: Row, models: Mapping[int, Row], chosen: set[int]) -> dict[int, Any]:
        """Return the outcomes of clients that have the mean for a moment."""
        device, outcomes, shared = self._states.device, {}, torch.from_numpy(mean)
        for group in self._states.groups:
            group.receive(dict.fromkeys(models, shared.to(device)))
            outcomes.update(group.evaluate(chosen)())
            group.receive({number: torch.from_numpy(model).to(device) for number, model in models.items()})
        return outcomes

    def _rows(self, gathered: Gathered) -> Rows:
        found = {name: gathered[name] for name in _SCORES} | self._task.rows(gathered.flags)
        distance: Floats = gathered["distance"]
        scores = {MEAN_MODEL + name: found[name] for name in self._names}
        return {"consensus_distance": np.array(distance.mean()), **scores}
