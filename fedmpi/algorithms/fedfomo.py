"""FedFomo: a client takes of single other clients' models what lowers its own validation loss.

Zhang, Sapra, Fidler, Yeung and Alvarez, "Personalized federated learning with first order model
optimization", ICLR 2021, Eq. 4 to 6. With L_i the loss on client i's validation graphs and theta_i the model
with which it began its last training (or its first model), each trained model theta_n that it has, its own
among them, has the weight

    w_n = (L_i(theta_i) - L_i(theta_n)) / ||theta_n - theta_i||,

and its next model is theta_i + sum_n w_n^+ (theta_n - theta_i), where w_n^+ = max(w_n, 0) / sum_m max(w_m,
0). The server sends a client `models` of the other participants' models. It keeps an affinity P, to whose
row i the weights w_n of client i are added, and chooses those of the largest P_in, each with probability
epsilon a random one instead; epsilon goes down in each round.

In a round of the paper clients train, get models and merge them. Here they merge at the beginning of their
next training, with the models of the round before. So what is evaluated is the model that a client trained
last. Tensors that are not shared are the client's own in every theta_n. The released code's norm is the sum
of absolute values; a client of it gets averages of groups of clients, too, and their weights are divided by
their sum before they are added to P. PFLlib's client goes on with the model that it trained where no weight
is above 0, and its server sends every client its own model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Ints
from fedmpi.algorithms.program import Client, Memory, Message, Server, Tensors
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, generator, key

_NOBODY = -1
"""In place of a client's number where there are fewer models than places."""


class FedFomoOptions(AlgorithmOptions):
    """Options of FedFomo."""

    name: Literal["fedfomo"] = "fedfomo"
    models: int = Field(5, ge=1)
    """Models of others that a client gets in a round; the paper's M."""
    epsilon: float = Field(0.3, ge=0, le=1)
    """Probability of a random model in place of that of the largest affinity, in the first round."""
    epsilon_decay: float = Field(0.05, ge=0)
    """By how much it goes down in each round, until it is 0."""


class FedFomo(Algorithm):
    """No mean: every client merges models of others into its own by weights from its validation loss."""

    name = "fedfomo"
    paper = "Zhang et al., ICLR 2021, Eq. 4 to 6"
    Options = FedFomoOptions
    options: FedFomoOptions
    communicates = False
    needs_labels = True

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return theta_i, with which the client began its last training, or its first model."""
        return {"begun": Memory("model", start="model")}

    def server_memory(self, trained: int, num_clients: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return P, and whose models each client has."""
        sent = np.full((num_clients, self.options.models), _NOBODY)
        return {"affinity": np.eye(num_clients), "sent": sent}

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the trained model, and the weights of the models that the client got."""
        return {"model": Message(("shared",)), "weights": Message((self.options.models,))}

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return models of others, and their clients."""
        places = self.options.models
        models = Message((places, "shared"), personal=True)
        return {"models": models, "clients": Message((places,), personal=True)}

    def train(self, client: Client) -> None:
        """Merge the models that there are, and train."""
        weights, others = np.zeros(self.options.models, np.float32), self._others(client)
        weights[: len(others)] = self._merge(client, [client.model.clone(), *others])[1:]
        client.send("weights", weights)
        client.memory["begun"] = client.model
        client.run_epochs()

    def _others(self, client: Client) -> list[Any]:
        """Return the models that the client got, as model vectors."""
        clients, rows, found = client.incoming["clients"], client.incoming["models"], []
        for place in range(0 if clients is None else int((clients != _NOBODY).sum())):
            found.append(client.model.clone())
            client.shared.unpack(rows[place], found[-1])
        return found

    def _merge(self, client: Client, models: list[Any]) -> Floats:
        """Set the client's model to the merged one; return the weights w_n, float64 [n]."""
        begun, trained, weights = client.memory["begun"], client.trained, np.zeros(len(models))
        loss = client.validation_loss(at=begun)
        for number, model in enumerate(models):
            apart = float((model - begun)[:trained].norm())
            weights[number] = weight(loss - client.validation_loss(at=model), apart)
        positive = np.maximum(weights, 0)
        client.model.copy_(begun)
        for share, model in zip(positive / (positive.sum() or 1.0), models, strict=True):
            client.model.add_(model - begun, alpha=float(share))
        return weights

    def trained(self, client: Client) -> None:
        """Send the trained model."""
        client.send("model", client.shared.pack(client.model).cpu().numpy())

    def decide(self, server: Server) -> None:
        """Add the weights to P, and tell each client its models of others."""
        affinity, sent = self.server["affinity"], self.server["sent"]
        for client, weights in zip(server.participants, server.messages["weights"], strict=True):
            there = sent[client] != _NOBODY
            affinity[client, sent[client][there]] += weights[there]
        models, options = server.messages["model"], self.options
        told = np.full((*sent.shape, models.shape[1]), np.nan, np.float32)
        epsilon = options.epsilon - options.epsilon_decay * server.round
        sent[:] = _NOBODY
        for client in range(len(sent)):
            others = server.participants[server.participants != client]
            draws = generator(key(server.seed, Purpose.CHOOSING, server.round, client))
            chosen = choose(affinity[client], others, options.models, epsilon, draws)
            sent[client, : len(chosen)] = chosen
            told[client, : len(chosen)] = models[np.searchsorted(server.participants, chosen)]
        server.tell("models", told)
        server.tell("clients", sent.astype(np.float32))

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the epochs; the validation losses of all models are about one pass more."""
        return local_epochs, 1


def weight(gain: float, apart: float) -> float:
    """Return w_n (Eq. 4): what a model gains by its distance; 0 where there is none of one of both."""
    return gain / apart if math.isfinite(gain) and 0 < apart < math.inf else 0.0


def choose(affinity: Floats, others: Ints, count: int, epsilon: float, draws: np.random.Generator) -> Ints:
    """Return clients whose models one gets, int64 [at most count].

    Parameters
    ----------
    affinity : float64 [clients]
        The client's row of P. Equal ones are in random order.
    others : int64 [k]
        Clients with a model.
    count : int
    epsilon : float
        Probability of a random one.
    draws : Generator
    """
    shuffled = draws.permutation(others)
    left = shuffled[np.argsort(-affinity[shuffled], kind="stable")].tolist()
    explores = draws.random(min(count, len(left))) < epsilon
    chosen = [left.pop(int(draws.integers(len(left))) if each else 0) for each in explores]
    return np.array(chosen, np.int64)
