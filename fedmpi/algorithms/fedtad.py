"""FedTAD: FedAvg whose server distils the clients' models, class by class, on graphs that it generates.

Zhu, Li, Wu, Wu, Hu and Li, "FedTAD: topology-aware data-free knowledge distillation for subgraph federated
learning", IJCAI 2024. A client k tells how reliable it is of each class c,

    kappa_kc = sum over training nodes v of class c of the mean of cos(h_v, h_u), u = v and v's neighbours

where h_v is a node's features beside the probabilities that random walks from v are back after 1 ... `walks`
steps. The server normalises kappa over the clients. After averaging, for each of `graphs` pseudo graphs, it
draws noise z for `nodes` nodes, as many of each class, and a generator makes their features x. A node is
joined to the `neighbours` of the largest cosines. With f_k the clients' models and f the global one,

    L_sem = sum over k and c of kappa_kc CE(f_k(x), c)          L_diverg = ... kappa_kc mean |f(x) - f_k(x)|
    L_div = exp(- mean over pairs of |x_i - x_j| |z_i - z_j|^2), for each client

the generator steps down `semantic` L_sem - L_diverg + `diversity` L_div, and the global model down L_diverg.
Both have Adam, whose moments stay. What rank 0 computes is in no FLOPs.

The losses, the mean over neighbours with the node itself and all sizes are those of the released code. It has
the numbers of nodes that sampled walks visit in place of probabilities, counts self-loops of the pseudo graph
twice, weighs clients by all their nodes, and distils with dropout.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats
from fedmpi.algorithms.program import Client, Conversation, Message, Server
from fedmpi.graphs.encodings import structure_encoding
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, generator, key

_HIDDEN = (64, 128, 256)
"""Widths of the generator's hidden layers."""


class FedTadOptions(AlgorithmOptions):
    """Options of FedTAD."""

    name: Literal["fedtad"] = "fedtad"
    walks: int = Field(5, ge=1, le=64)
    """Longest random walk whose return counts as a feature of a node; the paper's p."""
    nodes: int = Field(100, ge=1, le=10000)
    """Nodes of a pseudo graph."""
    noise: int = Field(32, ge=1, le=1024)
    """Random numbers of each."""
    neighbours: int = Field(5, ge=1)
    """Most similar nodes that each is joined to, itself counted."""
    graphs: int = Field(5, ge=0)
    """Pseudo graphs of a round; 0 is FedAvg."""
    generator_steps: int = Field(1, ge=1)
    """Steps of the generator for each."""
    model_steps: int = Field(5, ge=1)
    """Steps of the global model for each."""
    generator_lr: float = Field(1e-3, gt=0)
    """Of the generator's Adam."""
    model_lr: float = Field(1e-3, gt=0)
    """Of the global model's."""
    weight_decay: float = Field(5e-4, ge=0)
    """Weight of the L2 penalty in both."""
    semantic: float = Field(1.0, ge=0)
    """Weight of L_sem; the paper's lambda_1."""
    diversity: float = Field(1.0, ge=0)
    """Weight of L_div; the paper's lambda_2."""


class FedTad(Algorithm):
    """FedAvg, and then distillation of the clients' models into their mean."""

    name = "fedtad"
    paper = "Zhu et al., IJCAI 2024"
    Options = FedTadOptions
    options: FedTadOptions
    decides = frozenset({"moves"})
    asks = frozenset({"rows"})
    needs_labels = True
    runs_network = True
    tasks = frozenset({"node-classification"})

    def server_memory(self, trained: int, num_clients: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return the generator, 0 before it is drawn, the moments of both, and their steps."""
        size = generator_size(self.options.noise, self.network.width, self.network.classes)
        sizes = {"generator": size}
        for name, many in (("generator", size), ("model", trained)):
            sizes |= {f"{name}_first": many, f"{name}_second": many, f"{name}_steps": 1}
        return {name: np.zeros(many, np.float32) for name, many in sizes.items()}

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return kappa_k."""
        return {"reliability": Message((classes,))}

    def trained(self, client: Client) -> None:
        """Send kappa_k."""
        (classes,) = client.shape("reliability")
        client.send("reliability", reliability(client.graphs, classes, self.options.walks).astype(np.float32))

    def decide(self, server: Server) -> Conversation:
        """Average the models, and distil them."""
        from fedmpi.models.distillation import Taught  # imports torch

        for members in server.groups():
            received = server.model(members)
            updates = yield server.rows(members)
            mean = received + np.average(updates.astype(np.float64), axis=0, weights=server.weights[members])
            heard = shares_of(server.messages["reliability"])
            taught = Taught([tensor(received + update) for update in updates], tensor(heard))
            server.move(members, self._distilled(server, mean.astype(np.float32), taught) - received)

    def _distilled(self, server: Server, model: npt.NDArray[np.float32], taught: Any) -> Floats:
        """Return the global model after the round's game; the generator goes on from the round before."""
        import torch

        from fedmpi.models.distillation import Distillation, NodeGenerator, Settings

        place = server.seed, Purpose.DISTILLATION, server.round
        shape = self.options.noise, self.network.width, self.network.classes
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(key(*place))
            generated = NodeGenerator(*shape, _HIDDEN)
        if self.server["generator_steps"].any():
            generated.load(self.server["generator"])
        settings = Settings(**self.options.model_dump(exclude={"name", "walks"}))
        game = Distillation(settings, generated, self.network.outputs, self.server)

        def noise(number: int) -> npt.NDArray[np.float32]:
            size = self.options.nodes, self.options.noise
            return generator(key(*place, number)).standard_normal(size, dtype=np.float32)

        found = game.run(tensor(model), server.trained, taught, noise)
        self.server["generator"][:] = generated.values()
        return found.numpy().astype(np.float64)


def tensor(array: npt.NDArray[Any]) -> Any:
    """Return a copy as torch has it, float32, aligned."""
    import torch

    return torch.tensor(np.asarray(array, np.float32))


def generator_size(noise: int, width: int, classes: int) -> int:
    """Return the generator's parameters."""
    widths = (noise + classes, *_HIDDEN, width)
    linear = sum((one + 1) * other for one, other in pairwise(widths))
    return classes * classes + linear


def reliability(graphs: GraphSet, classes: int, walks: int) -> Floats:
    """Return how reliable a client is of each class, kappa_k, float64 [C].

    Parameters
    ----------
    graphs : GraphSet
        Its part of a graph, with training nodes as examples.
    classes, walks : int
    """
    topology = graphs.topology
    returns = structure_encoding(topology, walks, 1)[:, :walks]
    rows = np.concatenate([graphs.features, returns], axis=1).astype(np.float64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-8)
    degrees = np.diff(topology.row_ptr)
    receivers = np.repeat(np.arange(len(rows)), degrees)
    cosines = np.einsum("ij,ij->i", unit[receivers], unit[topology.columns])
    sums = np.bincount(receivers, cosines, minlength=len(rows))
    means = (1 + sums) / (1 + degrees)
    found: Floats = np.bincount(graphs.labels, means[graphs.places], minlength=classes).astype(np.float64)
    return found


def shares_of(reliabilities: npt.NDArray[Any]) -> Floats:
    """Return each participant's share of each class, [k, C]; 0 of classes that nobody has."""
    wide = np.maximum(reliabilities.astype(np.float64), 0)
    total = wide.sum(axis=0)
    shares: Floats = np.divide(wide, total, out=np.zeros_like(wide), where=total > 0)
    return shares
