"""FedVN: clients share virtual nodes and a GIN, and each joins its graphs to them by a generator of its own.

Fu, Chen, He, Wang, Zhang, Chen and Li, "Virtual nodes can help: tackling distribution shifts in federated
graph learning", AAAI 2025. ``model = "fedvn"`` is the network: virtual nodes, the GIN that passes messages
between them and the nodes, and the edge generator, which scores the edges. A participant trains, with L its
loss,

1. the edge generator by L + lambda_2 L_C, all else fixed, for its local epochs. With s_i the sum of the
   scores of a graph's nodes, s_k its mean over the client's graphs, and s that over all clients', L_C is the
   mean over the batch of -log(exp(cos(s_i, s_k) / t) / (exp(cos(s_i, s_k) / t) + exp(cos(s_i, s) / t)));
2. all else by L + lambda_1 L_D, the generator fixed, for as many. L_D is the mean over pairs of virtual nodes
   of the squared correlation of their states, which keeps them apart.

The server averages GIN and virtual nodes. Generators never leave their clients.

The equations are those of the released code, which differs in this: s_k is that of the last batch, and s
stays at its start, equal for all virtual nodes; dropout acts on one of the two parts in each phase;
normalisation has no running statistics, and is in the GIN's MLPs, too; the last layer has no ReLU; the
optimizer is SGD. Before a client has s, L_C is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.moon import contrast
from fedmpi.algorithms.program import Batch, Client, Message, Server, Size, Tensors
from fedmpi.errors import BadInput
from fedmpi.models.options import FedVnOptions as NetworkOptions
from fedmpi.models.options import ModelOptions

_STATES = ("virtual.states",)
_LEAST_NORM = 1e-12


class FedVnOptions(AlgorithmOptions):
    """Options of FedVN."""

    name: Literal["fedvn"] = "fedvn"
    decoupling: float = Field(0.1, ge=0)
    """Weight of L_D; the paper's lambda_1."""
    contrast: float = Field(1.0, ge=0)
    """Weight of L_C; the paper's lambda_2."""
    temperature: float = Field(0.1, gt=0)
    """Of L_C."""


class FedVn(Algorithm):
    """FedAvg of GIN and virtual nodes, with an edge generator for each client."""

    name = "fedvn"
    paper = "Fu et al., AAAI 2025"
    Options = FedVnOptions
    options: FedVnOptions
    needs_labels = True
    reads_embeddings = True

    def validate(self, model: ModelOptions) -> None:
        """Refuse other networks."""
        if model.name != "fedvn":
            raise BadInput('shares virtual nodes: choose model = "fedvn"')

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client: virtual nodes do, and the GIN by the case's `share`."""
        return name.startswith("virtual.") or (not _of_generator(name) and super().shares(name, share))

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """Return those of the edge generator."""
        return {"generator": "model"}

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return s_k."""
        assert isinstance(model, NetworkOptions)
        return {"score": Message((model.nodes,))}

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return s."""
        return self.messages(model, classes)

    def train(self, client: Client) -> None:
        """Train the edge generator, and then all else."""
        everybody = client.incoming["score"]
        term = None
        if everybody is not None:
            own = self._scores(client)

            def term(batch: Batch, embeddings: Any) -> Any:
                scores = embeddings[:, -len(own) :]
                apart = contrast(scores, own[None], everybody[None], self.options.temperature)
                return self.options.contrast * apart

        client.run_epochs(moments="generator", frozen=lambda name: not _of_generator(name), term=term)
        virtual = client.part(_STATES)
        for batch in client.batches():
            gradient = client.gradient(batch)
            slope = decoupling_slope(virtual.pack(client.model).view(client.shape("score")[0], -1))
            virtual.unpack(virtual.pack(gradient) + self.options.decoupling * slope.flatten(), gradient)
            client.step(client.model, gradient, frozen=_of_generator)

    def trained(self, client: Client) -> None:
        """Send s_k."""
        client.send("score", self._scores(client).cpu().numpy())

    def _scores(self, client: Client) -> Any:
        """Return the mean over the training graphs of the sums of their scores, float32 [M]."""
        return client.embeddings()[:, -client.shape("score")[0] :].double().mean(dim=0).float()

    def decide(self, server: Server) -> None:
        """Tell s, the mean weighted as the models are."""
        weights = server.weights[server.participants]
        mean = np.average(server.messages["score"].astype(np.float64), axis=0, weights=weights)
        server.tell("score", mean.astype(np.float32))

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the epochs of both phases, and the passes for s_k."""
        return 2 * local_epochs, 2


def decoupling_slope(states: Any) -> Any:
    """Return the gradient of L_D by the virtual nodes' states, [M, h]."""
    states = states.detach().clone().requires_grad_()
    centred = states - states.mean(dim=1, keepdim=True)
    unit = centred / centred.norm(dim=1, keepdim=True).clamp_min(_LEAST_NORM)
    (unit @ unit.T).square().mean().backward()
    return states.grad


def _of_generator(name: str) -> bool:
    return name.startswith("score.")
