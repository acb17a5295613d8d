"""Training steps and evaluation on a client's data: what a pass is, whichever kernels do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from torch import Tensor

from fedmpi.case.optimizers import OptimizerOptions
from fedmpi.client.optimizer import AdamState
from fedmpi.graphs.packed import GraphSet, Int, Topology
from fedmpi.models.counts import GraphCounts
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.outcome import Outcome, joined

LARGEST_EVALUATION = 1024
"""Graphs per forward pass of an evaluation; bounds memory."""


@dataclass(frozen=True)
class Pass:
    """Outcome of a pass, and its FLOPs as the model counts them and as the kernels did them.

    `vectors` are those that an unsupervised objective gives to graphs, float32 [graphs, d]. A pass over
    a whole epoch makes up several `steps`.
    """

    outcome: Outcome
    model_flops: int
    executed_flops: int
    vectors: npt.NDArray[np.float32] | None = None
    steps: int = 1


@dataclass(frozen=True)
class Embedded:
    """What the model gives of graphs or nodes, or the mean of that, and the FLOPs of a forward pass."""

    rows: Any
    model_flops: int
    executed_flops: int


@dataclass(frozen=True)
class Counted:
    """FLOPs of something that is no pass of the model."""

    model_flops: int
    executed_flops: int


Work = Pass | Embedded | Counted
"""What takes FLOPs."""


class Passes:
    """A client's training graphs and held-out graphs, ready for one kind of kernels.

    The model's parameter vector is read; `step` leaves the gradient of the
    objective in the model's gradient vector.
    """

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs as `step` takes them; None stands for all, prepared once."""
        raise NotImplementedError

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""
        raise NotImplementedError

    @property
    def descends(self) -> bool:
        """Whether `descend` is there. Its passes have nothing to do at the end of an epoch."""
        return False

    def descend(
        self,
        batches: Sequence[Any],
        streams: Sequence[DropoutStreams],
        optimizer: OptimizerOptions,
        state: AdamState,
    ) -> list[Pass]:
        """Take an optimizer step for each batch of an epoch, all in one call; the parameters change in place.

        Parameters
        ----------
        batches : sequence
            Of `batch`; one at least.
        streams : sequence of DropoutStreams
            Dropout of each step.
        optimizer : OptimizerOptions
        state : AdamState
            Moments and step count; moved on by the steps.

        Returns
        -------
        list of Pass
            One of each step, or one of all together.
        """
        raise NotImplementedError

    def evaluate(self) -> Pass:
        """Classify all held-out graphs without dropout; or give vectors to all graphs of the client."""
        raise NotImplementedError

    def begin_round(self, last: Tensor | None) -> None:
        """Prepare for a round's training; called once, with the received parameters in the model.

        Parameters
        ----------
        last : float32 [length] or None
            The client's parameters at the end of its last round, where the objective keeps them.
        """

    def end_epoch(self) -> None:
        """Complete a local epoch, with its parameters in the model."""

    def end_round(self) -> None:
        """Release what is kept for the round; called once after its training."""


class Evaluated:
    """Graphs for evaluations: once their parts are prepared, only these and the labels are held.

    Parameters
    ----------
    graphs : GraphSet
    prepare : callable
        Returns the parts, as kernels evaluate them.
    """

    def __init__(self, graphs: GraphSet, prepare: Callable[[GraphSet], list[Any]]) -> None:
        self.labels = graphs.labels
        self._waiting: Callable[[], list[Any]] | None = partial(prepare, graphs)
        self._parts: list[Any] = []

    def parts(self) -> list[Any]:
        """Return the parts; the first call prepares them."""
        if self._waiting is not None:
            self._parts, self._waiting = self._waiting(), None
        return self._parts


class Supervised(Passes):
    """Passes of an objective with labels, which evaluate and embed graphs part by part.

    Kernels prepare their own kind of part.

    Parameters
    ----------
    train, held_out : GraphSet

    Attributes
    ----------
    train, held_out : Evaluated
    """

    late: ClassVar[bool] = False
    """Whether held-out graphs wait for their first evaluation: a device has no room for idle ones."""

    def __init__(self, train: GraphSet, held_out: GraphSet) -> None:
        self.train = Evaluated(train, self._parts)
        self._hold_out(held_out)

    def with_held_out(self, graphs: GraphSet) -> Self:
        """Return passes that share the training graphs and have other held-out ones."""
        other = copy(self)
        other._hold_out(graphs)
        return other

    def _hold_out(self, graphs: GraphSet) -> None:
        self.held_out = Evaluated(graphs, self._parts)
        if not self.late:
            self.held_out.parts()

    def _parts(self, graphs: GraphSet) -> list[Any]:
        """Return graphs as they are evaluated; one part at least."""
        return [self._part(graphs.take(numbers)) for numbers in in_parts(graphs.num_graphs)]

    def _part(self, graphs: GraphSet) -> Any:
        """Return graphs as the kernels evaluate them at once."""
        raise NotImplementedError

    def _judge(self, part: Any) -> Pass:
        """Classify the graphs of a part without dropout."""
        raise NotImplementedError

    def _embed(self, part: Any) -> Embedded:
        """Embed the graphs of a part without dropout, up to the pooling."""
        raise NotImplementedError

    def evaluate(self) -> Pass:
        """Classify all held-out graphs without dropout."""
        return self._evaluate(self.held_out.parts())

    def evaluate_training(self) -> Pass:
        """Classify all training graphs without dropout."""
        return self._evaluate(self.train.parts())

    def _evaluate(self, parts: list[Any]) -> Pass:
        judged = [self._judge(part) for part in parts]
        return Pass(joined([each.outcome for each in judged]), *total_flops(judged))

    def embedded(self, *, held_out: bool = False) -> Iterator[Embedded]:
        """Embed all training or held-out graphs, part by part; the kernels may overwrite the rows of each."""
        yield from map(self._embed, (self.held_out if held_out else self.train).parts())

    def embed(self) -> Embedded:
        """Return the mean embedding of all training graphs, float64 [h]."""
        total, counted, executed = np.zeros(1), 0, 0
        for part in self.embedded():
            total = total + _sum(part.rows)
            counted += part.model_flops
            executed += part.executed_flops
        return Embedded(total / len(self.train.labels), counted, executed)


def in_parts(graphs: int) -> list[Int]:
    """Return the numbers of so many graphs in parts of `LARGEST_EVALUATION`; one part at least."""
    everything = np.arange(graphs)
    cuts = range(0, max(graphs, 1), LARGEST_EVALUATION)
    return [everything[cut : cut + LARGEST_EVALUATION] for cut in cuts]


def total_flops(work: Iterable[Work]) -> tuple[int, int]:
    """Return the FLOPs of all together, as the model counts them and as the kernels did them."""
    both = [(each.model_flops, each.executed_flops) for each in work]
    return sum(model for model, _ in both), sum(executed for _, executed in both)


def topology_counts(topology: Topology) -> GraphCounts:
    """Return what the formulas of FLOPs count."""
    return GraphCounts(topology.num_graphs, topology.num_nodes, topology.num_edges)


def _sum(rows: Any) -> npt.NDArray[np.float64]:
    """Return the sum of rows in float64."""
    if isinstance(rows, Tensor):
        return rows.double().sum(dim=0).cpu().numpy()
    found: npt.NDArray[np.float64] = rows.sum(axis=0, dtype=np.float64)
    return found
