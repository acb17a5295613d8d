"""FED-PUB: each client gets a mean of models that act like its own on a random graph, under its own mask.

Baek, Jeong, Jin, Yoon and Hwang, "Personalized subgraph federated learning", ICML 2023, sections 4.1 and 4.2.

*Similarity.* All clients give one random graph to their trained models: a stochastic block model of
`communities` parts of `size` nodes, an edge between two nodes of a part with probability `density`, none
between parts, normal features. h_i is the mean of the nodes' last states, and the next model of client i is
the mean of all participants' models with weights exp(tau cos(h_i, h_j)).

*Masks.* A client's weight matrices theta are multiplied by its mask mu, element by element. It minimises
L(theta mu) + `l1` |mu| + `proximal` |theta - received|^2, with the first norm the sum of the absolute values.
Masks start at 1 and stay with the client. Elements of mu below `l1` count as 0 after training.

The released code has the same kind of graph. It makes both penalties of detached tensors, so that they change
no gradient; its second one is a norm without the square, and begins with round 2. It takes the nodes' states
before the activation. Its network begins with a convolution, where fedmpi's begin with a Linear. `weights` of
the case are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions, Floats, Rows
from fedmpi.algorithms.mixing import Mixing
from fedmpi.algorithms.program import Client, Evaluated, Memory, Message, Part, Size, Tensors
from fedmpi.algorithms.signatures import cosine_similarity
from fedmpi.graphs.packed import Topology, pointers
from fedmpi.models.options import ModelOptions, NetworkOptions
from fedmpi.seeds import Purpose, generator, key

_NORMS = ("norm.", "graph_norm.")
"""Scales of normalisation are no weight matrices."""


class FedPubOptions(AlgorithmOptions):
    """Options of FED-PUB."""

    name: Literal["fedpub"] = "fedpub"
    tau: float = Field(3.0, ge=0)
    """Scale of the similarities; 0: a mean of equal weights. Released: 3 for clients that share no node."""
    l1: float = Field(1e-3, ge=0, le=1)
    """Weight of the masks' sum, and what an element must reach; the paper's lambda_1."""
    proximal: float = Field(1e-3, ge=0)
    """Weight of the squared distance to the received model; the paper's lambda_2."""
    communities: int = Field(5, ge=1)
    """Parts of the random graph."""
    size: int = Field(100, ge=1)
    """Nodes of each part."""
    density: float = Field(0.1, ge=0, le=1)
    """Probability of an edge between two nodes of a part."""


class FedPub(Mixing):
    """A model for each client, from clients whose models act like its own, under its own mask."""

    name = "fedpub"
    paper = "Baek et al., ICML 2023, sections 4.1 and 4.2"
    Options = FedPubOptions
    options: FedPubOptions
    needs_labels = True
    tasks = frozenset({"node-classification", "node-multi-label"})

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return h_i, as wide as a node's state."""
        assert isinstance(model, NetworkOptions)  # others are for graphs
        return {"state": Message((model.embedding,))}

    def trained(self, client: Client) -> None:
        """Send the mean state of the random graph's nodes under the mask."""
        options = self.options
        sizes = options.communities, options.size, options.density
        graph, features = random_graph(client.seed, client.width, *sizes)
        state = client.mean_state(graph, features, at=self._masked(client))
        client.send("state", state.astype(np.float32))

    def mixed(self, messages: Mapping[str, Rows]) -> Floats:
        """Return exp(tau cos(h_i, h_j)), in each row by its largest, which leaves the shares as they are."""
        scaled = self.options.tau * cosine_similarity(messages["state"])
        weights: Floats = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return weights

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return mu, for the weight matrices."""
        names = tensors.names
        chosen = tuple(name for name in names if name.endswith("weight") and not name.startswith(_NORMS))
        return {"mask": Memory(chosen, start=1.0, judged=True)}

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """Return those of mu."""
        return {"mask": self.memory(tensors)["mask"].size}

    def train(self, client: Client) -> None:
        """Take each step of theta and mu by the gradient at their product."""
        mask, matrices, trained = client.memory["mask"], client.part("mask"), client.trained
        for batch in client.batches():
            product = _product(client.model, matrices, mask)
            gradient = client.gradient(batch, at=product, reported=True)
            client.model[trained:] = product[trained:]  # running statistics of its pass
            at_product = matrices.pack(gradient)
            matrices.unpack(at_product * mask, gradient)
            of_mask = at_product * matrices.pack(client.model)
            of_mask.add_(mask.sign(), alpha=self.options.l1)
            client.step(mask, of_mask, moments="mask")
            client.step(client.model, gradient)

    def change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """Add the gradient of the squared distance to the received model."""
        gradient.add_(model - received, alpha=2 * self.options.proximal)

    def evaluated(self, client: Evaluated) -> Any:
        """Return theta mu, without elements of mu below l1."""
        return self._masked(client)

    def _masked(self, client: Client | Evaluated) -> Any:
        mask = client.memory["mask"]
        kept = mask.masked_fill(mask.abs() < self.options.l1, 0.0)
        return _product(client.model, client.part("mask"), kept)


def _product(model: Any, matrices: Part, mask: Any) -> Any:
    """Return a model with its weight matrices times the mask."""
    found = model.clone()
    matrices.unpack(matrices.pack(model) * mask, found)
    return found


@lru_cache(maxsize=2)
def random_graph(seed: int, width: int, communities: int, size: int, density: float) -> tuple[Topology, Rows]:
    """Return the graph that all clients of a run give to their models, and its features.

    Parameters
    ----------
    seed : int
        The case's seed.
    width : int
        Features of a node.
    communities, size : int
        Parts, and nodes of each.
    density : float
        Probability of an edge between two nodes of a part.

    Returns
    -------
    topology : Topology
        One graph of communities times size nodes.
    features : float32 [N, width]
    """
    draws = generator(key(seed, Purpose.PROXY))
    first, second = np.triu_indices(size, 1)
    edges = []
    for part in range(communities):
        drawn = draws.random(len(first)) < density
        edges.append(part * size + np.stack([first[drawn], second[drawn]]))
    one_way = np.concatenate(edges, axis=1)
    senders, receivers = np.concatenate([one_way, one_way[::-1]], axis=1)
    order = np.lexsort((senders, receivers))
    nodes = communities * size
    row_ptr = pointers(np.bincount(receivers, minlength=nodes))
    topology = Topology(np.array([0, nodes]), row_ptr, senders[order].astype(np.int64))
    return topology, draws.standard_normal((nodes, width), dtype=np.float32)
