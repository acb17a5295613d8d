"""What a pass over some graphs found, whatever kernels made it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Outcome:
    """Losses of B graphs, and what they are scored by.

    Attributes
    ----------
    losses : float64 [B]
        Negative log-likelihood of each graph; with `weights`, the sum over its labels.
    hits : uint8 [B]
        1 where a graph is classified rightly; 0 with `scores`.
    weights : int64 [B] or None
        Labels of each graph, where it may have several or none.
    scores : float32 [B, T] or None
        Scores or predictions of each graph by task, where there is no single class.
    predicted : int16 [B] or None
        Predicted class of each example, where the task asks for it.
    """

    losses: npt.NDArray[np.float64]
    hits: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.int64] | None = None
    scores: npt.NDArray[np.float32] | None = None
    predicted: npt.NDArray[np.int16] | None = None

    @property
    def loss_sum(self) -> float:
        """Sum of the losses."""
        return float(self.losses.sum())

    @property
    def weight(self) -> int:
        """What the sum of the losses is divided by: the graphs, or their labels."""
        return len(self.losses) if self.weights is None else int(self.weights.sum())

    @property
    def correct(self) -> int:
        """Number of graphs classified rightly."""
        return int(self.hits.sum())

    @property
    def mean_loss(self) -> float:
        """Mean of the losses; NaN over no graph."""
        return self.loss_sum / self.weight if self.weight else math.nan

    @property
    def accuracy(self) -> float:
        """Share of the graphs classified rightly; NaN where they have no single class, or over no graph."""
        return self.correct / len(self.hits) if self.scores is None and len(self.hits) else math.nan

    def part(self, examples: slice) -> Outcome:
        """Return what was found for some of the examples."""
        return _of({name: None if of is None else of[examples] for name, of in vars(self).items()})


@dataclass(frozen=True)
class Evaluation:
    """Outcomes on both held-out splits, and the FLOPs counted and executed.

    `vectors` are those of an unsupervised objective, float32 [graphs, d]: of training, validation and
    test graphs; its outcomes are empty.
    """

    val: Outcome
    test: Outcome
    model_flops: int
    executed_flops: int
    vectors: npt.NDArray[np.float32] | None = None


def joined(found: Sequence[Outcome]) -> Outcome:
    """Return what was found for the examples of several passes, in order; at least one pass."""
    parts = {name: [vars(each)[name] for each in found] for name in vars(found[0])}
    return _of({name: None if each[0] is None else np.concatenate(each) for name, each in parts.items()})


def _of(fields: dict[str, Any]) -> Outcome:
    return Outcome(**fields)
