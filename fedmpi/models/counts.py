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
    """What a pass works on.

    Attributes
    ----------
    graphs, nodes, edges : int
        Numbers of graphs, nodes and directed edges.
    examples : int or None
        Nodes or pairs that the head sees; None where it sees graphs.
    entries : int or None
        Entries of sparse node features that are not zero; None where features are dense.
    outputs : int or None
        Scores that the head gives of each example; None: one of every class.
    """

    graphs: int
    nodes: int
    edges: int
    examples: int | None = None
    entries: int | None = None
    outputs: int | None = None

    @property
    def heads(self) -> int:
        """Number of rows that the head sees."""
        return self.graphs if self.examples is None else self.examples

    @property
    def pooled(self) -> int:
        """Number of nodes that are pooled."""
        return self.nodes if self.examples is None else 0

    def first_layer(self, width: int, hidden: int, *, executed: bool) -> int:
        """Return the FLOPs of a Linear of the features: executed ones skip the zeros of sparse features."""
        numbers = self.nodes * width if self.entries is None or not executed else self.entries
        return 2 * numbers * hidden


class ModelFlops(Protocol):
    """FLOPs of passes of one model of one shape."""

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass."""

    def of(self, counts: GraphCounts, training: bool) -> Flops:
        """Return the FLOPs of a pass: forward and backward, or forward alone."""
        return self.training(counts) if training else self.forward(counts)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """Return the FLOPs that the chosen kernels of torch do for the same pass; by default all of them.

        Parameters
        ----------
        counts : GraphCounts
        training : bool
            Forward and backward, or forward alone.
        kernels : str
        propagated : bool
            The batch keeps the propagated features of an earlier pass.
        """
        return self.of(counts, training).total
