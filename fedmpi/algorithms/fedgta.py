"""FedGTA: each client gets a mean of the models of clients whose smoothed predictions are like its own.

Li, Wu, Zhang, Zhu, Li and Wang, "FedGTA: topology-aware averaging for federated graph learning", VLDB 2023
(PVLDB 17, 1), Algorithms 1 and 2. With A the client's graph, D the row sums of A + I and Y(0) the softmax
of its trained model's outputs for all its nodes, a client computes

    Y(l) = alpha Y(0) + (1 - alpha) D^-1/2 (A + I) D^-1/2 Y(l - 1)   (label propagation, l = 1 ... k)
    H = sum over nodes i and classes j of D_ii (1/e + Y_ij log Y_ij)   (smoothing confidence, Y = Y(k))
    M = moments of the orders 1 ... K of each column over the nodes    (mixed moments, Y = Y(k))

and sends H and M with its model. The next model of client i is the mean of the models of all clients j with
cos(M_i, M_j) >= epsilon, weighted by H_j. What is evaluated is this model.

From the released code: training nodes start from their labels, and moments may be raw, central, or both.
That code's alpha is the neighbours' share, 0.5 as well. It also adds the labels in every step, takes a
softmax of the result (for H with a temperature of 20), puts the labels back, and weighs nodes by degrees
without the self loop. `weights` of the case are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions, Floats, Ints, Rows
from fedmpi.algorithms.mixing import Mixing
from fedmpi.algorithms.program import Client, Message, Nodes
from fedmpi.algorithms.signatures import cosine_similarity
from fedmpi.errors import BadInput
from fedmpi.models.options import ModelOptions


class FedGtaOptions(AlgorithmOptions):
    """Options of FedGTA."""

    name: Literal["fedgta"] = "fedgta"
    steps: int = Field(5, ge=0)
    """Steps of label propagation; the paper's k."""
    alpha: float = Field(0.5, ge=0, le=1)
    """Share of the first soft labels in each step."""
    moments: Literal["raw", "central", "both"] = "both"
    """Moments that are compared. Central ones begin with order 2, because the first is 0."""
    order: int = Field(6, ge=1)
    """Highest order of the moments; the paper's K."""
    epsilon: float = Field(0.5, ge=-1, le=1)
    """Least similarity of the moments of clients that are averaged."""


class FedGta(Mixing):
    """A model for each client, from clients that are like it by the moments of their soft labels."""

    name = "fedgta"
    paper = "Li et al., VLDB 2023, Algorithms 1 and 2"
    Options = FedGtaOptions
    options: FedGtaOptions
    needs_labels = True
    tasks = frozenset({"node-classification"})

    def validate(self, model: ModelOptions) -> None:
        """Refuse central moments without any."""
        if self.options.moments == "central" and self.options.order < 2:
            raise BadInput("has no central moment of order 1: use order = 2 or more")

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the smoothing confidence H, and the moments M of each class."""
        return {"confidence": Message((1,)), "moments": Message((len(_orders(self.options)) * classes,))}

    def trained(self, client: Client) -> None:
        """Send H and M."""
        nodes = client.nodes()
        smoothed = soft_labels(nodes, self.options.steps, self.options.alpha)
        confidence = smoothing_confidence(smoothed, nodes.degrees + 1)
        client.send("confidence", np.array([confidence], np.float32))
        client.send("moments", moments(smoothed, self.options).astype(np.float32))

    def mixed(self, messages: Mapping[str, Rows]) -> Floats:
        """Return H_j where the moments of i and j are similar, else 0."""
        similar = cosine_similarity(messages["moments"]) >= self.options.epsilon
        return np.where(similar, messages["confidence"][:, 0].astype(np.float64), 0.0)


def soft_labels(nodes: Nodes, steps: int, alpha: float) -> Floats:
    """Return Y(k), float64 [N, C]; the start is the softmax of the outputs, and the labels where known."""
    logits = nodes.logits.astype(np.float64)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    start: Floats = shifted / shifted.sum(axis=1, keepdims=True)
    start[nodes.places] = np.eye(start.shape[1])[nodes.labels]
    smoothed = start
    for _ in range(steps):
        smoothed = alpha * start + (1 - alpha) * nodes.propagate(smoothed)
    return smoothed


def smoothing_confidence(smoothed: Floats, degrees: Ints) -> float:
    """Return H, 0 or more; the smallest value of y log y is -1/e.

    Parameters
    ----------
    smoothed : float64 [N, C]
    degrees : int64 [N]
        Row sums of A + I.
    """
    entropy = smoothed * np.log(np.where(smoothed > 0, smoothed, 1.0))
    return float(degrees @ np.sum(np.exp(-1) + entropy, axis=1))


def moments(smoothed: Floats, options: FedGtaOptions) -> Floats:
    """Return the moments of each column over the nodes, float64: all classes of one order, then the next."""
    of = {"raw": smoothed, "central": smoothed - smoothed.mean(axis=0)}
    return np.concatenate([np.mean(of[kind] ** order, axis=0) for kind, order in _orders(options)])


def _orders(options: FedGtaOptions) -> list[tuple[str, int]]:
    """Return kind and order of the moments of one class."""
    raw = [("raw", order) for order in range(1, options.order + 1)]
    central = [("central", order) for order in range(2, options.order + 1)]
    return {"raw": raw, "central": central, "both": raw + central}[options.moments]
