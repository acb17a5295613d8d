"""FLOPs of NeighGen: dense products, and one addition for each number that a sum over neighbours adds."""

from __future__ import annotations

from dataclasses import dataclass

from fedmpi.models.generator import Generator

_TRAINING = 3
"""A step is about three forward passes: the gradients of inputs and of parameters take one each."""

_FROZEN = 2
"""The same without gradients of parameters."""


@dataclass(frozen=True)
class NeighGenFlops:
    """Counts of one client's network, of `width` features and `classes` outputs."""

    settings: Generator
    width: int
    classes: int

    def _sage(self, nodes: int, new: int, edges: int, out: int) -> int:
        """Return a forward pass of two layers; generated nodes take the first alone."""
        hidden = self.settings.hidden
        dense = 4 * (nodes + new) * self.width * hidden + 2 * (2 * nodes + new) * hidden * out
        return dense + (edges + 2 * new) * hidden + (edges + new) * out

    def encoding(self, nodes: int, edges: int) -> int:
        """Return a forward pass of encoder and dGen."""
        latent = self.settings.latent
        return self._sage(nodes, 0, edges, latent) + 2 * nodes * latent

    def features(self, nodes: int) -> int:
        """Return a forward pass of fGen for the nodes that get neighbours."""
        first, second = self.settings.generator_hidden
        per_node = self.settings.latent * first + first * second + second * self.settings.most * self.width
        return 2 * nodes * per_node

    def distances(self, pairs: int) -> int:
        """Return the squared distances of pairs of rows: difference, square, sum."""
        return 3 * pairs * self.width

    def answers(self, rows: int, nodes: int) -> int:
        """Return the differences of rows to the nearest of a client's nodes."""
        return 2 * rows * nodes * self.width + 2 * nodes * self.width + rows * self.width

    def epoch(self, nodes: int, edges: int, owners: int, new: int, pairs: int) -> int:
        """Return an epoch of a client that trains alone.

        Parameters
        ----------
        nodes, edges : int
            Of the impaired graph.
        owners, new : int
            Nodes that get neighbours, and these neighbours.
        pairs : int
            Pairs of generated and hidden neighbours of one node.
        """
        mended = self._sage(nodes, new, edges, self.classes)
        passes = self.encoding(nodes, edges) + self.features(owners) + mended
        return _TRAINING * passes + self.distances(pairs)

    def exchange(self, nodes: int, edges: int, owners: int, new: int, pairs: int) -> int:
        """Return an epoch in which fGen alone trains, without what clients answer each other."""
        mended = self._sage(nodes, new, edges, self.classes)
        return _TRAINING * self.features(owners) + _FROZEN * mended + self.distances(pairs)
