"""Settings of a generator of missing neighbours (imports without torch)."""

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
