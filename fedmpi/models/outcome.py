"""What a pass over some graphs found, whatever kernels made it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    losses: npt.NDArray[np.float64]
    hits: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.int64] | None = None
    scores: npt.NDArray[np.float32] | None = None

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

    def part(self, graphs: slice) -> Outcome:
        """Return what was found for some of the graphs."""
        if self.weights is None or self.scores is None:
            return Outcome(self.losses[graphs], self.hits[graphs])
        return Outcome(self.losses[graphs], self.hits[graphs], self.weights[graphs], self.scores[graphs])


def joined(found: Sequence[Outcome]) -> Outcome:
    """Return what was found for the graphs of several passes, in order; at least one pass."""
    losses = np.concatenate([each.losses for each in found])
    hits = np.concatenate([each.hits for each in found])
    weights = [each.weights for each in found if each.weights is not None]
    scores = [each.scores for each in found if each.scores is not None]
    if not scores:
        return Outcome(losses, hits)
    return Outcome(losses, hits, np.concatenate(weights), np.concatenate(scores))
