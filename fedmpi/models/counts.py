"""What FLOPs are counted on, and how a count is kept (imports without torch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Flops:
    """FLOPs of one pass: dense products, and sums over neighbours and graphs."""

    dense: int
    sparse: int

    @property
    def total(self) -> int:
        """Both kinds together."""
        return self.dense + self.sparse


@dataclass(frozen=True)
class GraphCounts:
    """What a pass works on: numbers of graphs, nodes and directed edges."""

    graphs: int
    nodes: int
    edges: int


class ModelFlops(Protocol):
    """FLOPs of passes of one model of one shape."""

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass."""

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """Return the FLOPs that the chosen kernels of torch do for the same pass.

        Parameters
        ----------
        counts : GraphCounts
        training : bool
            Forward and backward, or forward alone.
        kernels : str
        propagated : bool
            The batch keeps the propagated features of an earlier pass.
        """
