"""Settings of a generator of missing neighbours, and the FLOPs of NeighGen (imports without torch)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Generator:
    """A network that generates missing neighbours, and how it is trained before the first round.

    Attributes
    ----------
    hidden_share : float
        Share of a client's nodes that are hidden while it trains, in (0, 1).
    most : int
        Most neighbours that a node gets.
    hidden, latent : int
        Widths of the encoder; the classifier's hidden layer has the first.
    generator_hidden : (int, int)
        Widths of the two hidden layers behind the encoder that end in features.
    dropout : float
    epochs : int
        Epochs in which each client trains alone.
    exchanges : int
        Epochs after these, in which clients answer each other's generated features.
    lr, weight_decay : float
        Of Adam.
    number_weight, feature_weight, class_weight : float
        Weights of the losses of numbers, features and classes.
    others_weight : float
        Weight of the other clients' nodes within the loss of features.
    """

    hidden_share: float
    most: int
    hidden: int
    latent: int
    generator_hidden: tuple[int, int]
    dropout: float
    epochs: int
    exchanges: int
    lr: float
    weight_decay: float
    number_weight: float
    feature_weight: float
    class_weight: float
    others_weight: float


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
