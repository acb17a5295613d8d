"""What a pass over some graphs found, whatever kernels made it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Outcome:
    """Losses and right classifications of B graphs.

    Attributes
    ----------
    losses : float64 [B]
        Negative log-likelihood of each graph.
    hits : uint8 [B]
        1 where a graph is classified rightly.
    """

    losses: npt.NDArray[np.float64]
    hits: npt.NDArray[np.uint8]

    @property
    def loss_sum(self) -> float:
        """Sum of the losses."""
        return float(self.losses.sum())

    @property
    def correct(self) -> int:
        """Number of graphs classified rightly."""
        return int(self.hits.sum())

    @property
    def mean_loss(self) -> float:
        """Mean of the losses."""
        return self.loss_sum / len(self.losses)

    @property
    def accuracy(self) -> float:
        """Share of the graphs classified rightly."""
        return self.correct / len(self.hits)

    def part(self, graphs: slice) -> Outcome:
        """Return what was found for some of the graphs."""
        return Outcome(self.losses[graphs], self.hits[graphs])
