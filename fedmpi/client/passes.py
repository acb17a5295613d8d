"""Training steps and evaluation on a client's data: what a pass is, whichever kernels do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from fedmpi.graphs.packed import GraphSet, Int, Topology
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flops import GraphCounts
from fedmpi.models.outcome import Outcome

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
    """What the model pools of some training graphs, float32 [B, h], and the FLOPs of a forward pass."""

    rows: Any
    model_flops: int
    executed_flops: int


@dataclass(frozen=True)
class Embedding:
    """Mean of what the model pools of the training graphs, float64 [h], and the FLOPs of a forward pass."""

    mean: npt.NDArray[np.float64]
    model_flops: int
    executed_flops: int


class Passes(Protocol):
    """A client's training graphs and held-out graphs, ready for one kind of kernels.

    The model's parameter vector is read; `step` leaves the gradient of the
    objective in the model's gradient vector.
    """

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs as `step` takes them; None stands for all, prepared once."""

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""

    def evaluate(self) -> Pass:
        """Classify all held-out graphs without dropout; or give vectors to all graphs of the client."""

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


class Supervised:
    """Passes of an objective that needs no copies of the model."""

    def begin_round(self, last: Tensor | None) -> None:
        """No-op."""

    def end_epoch(self) -> None:
        """No-op."""

    def end_round(self) -> None:
        """No-op."""


def evaluation_parts(graphs: GraphSet) -> list[GraphSet]:
    """Return graphs in parts of `LARGEST_EVALUATION`; one part at least."""
    everything = np.arange(graphs.num_graphs)
    cuts = range(0, max(len(everything), 1), LARGEST_EVALUATION)
    return [graphs.take(everything[cut : cut + LARGEST_EVALUATION]) for cut in cuts]


def topology_counts(topology: Topology) -> GraphCounts:
    """Return what the formulas of FLOPs count."""
    return GraphCounts(topology.num_graphs, topology.num_nodes, topology.num_edges)
