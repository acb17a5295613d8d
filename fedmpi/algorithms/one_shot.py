"""One-shot ensemble: clients train alone, and the mean of their models' predictions decides for all.

Guha, Talwalkar and Smith, "One-shot federated learning", arXiv:1902.11175, 2019. In the one round (`rounds =
1`, with many `local_epochs`) every client trains its model to the end and sends it. The server selects
`members` of the models: those of the smallest loss on their own validation graphs (the paper's
cross-validation selection), of most training graphs (data selection), or random ones. All clients get them,
and predict the class of a graph by the mean of the members' class probabilities.

The paper's clients train support vector machines; its first two selections take models above a threshold, of
these the best. Its distillation of the ensemble needs further graphs and is left out. With more rounds
clients go on training their own models. Without `members` the ensemble has the last model of each client
that took part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.program import Client, Evaluated, Message, Server
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, generator, key

_LARGEST_LOSS = 1e30


class OneShotOptions(AlgorithmOptions):
    """Options of the one-shot ensemble."""

    name: Literal["one-shot"] = "one-shot"
    members: int = Field(0, ge=0)
    """Models of the ensemble; 0: those of all clients."""
    selection: Literal["validation", "samples", "random"] = "validation"
    """Which: those of the smallest validation loss, of most training graphs, or random ones."""


class OneShot(Algorithm):
    """No mean of parameters: all clients predict by the mean of several clients' predictions."""

    name = "one-shot"
    paper = "Guha et al., arXiv:1902.11175, 2019"
    Options = OneShotOptions
    options: OneShotOptions
    communicates = False
    reads_share = False
    needs_labels = True
    needs_classes = True
    reads_outputs = True
    numbers = ("validation_loss",)

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client: a whole model does, whatever the case's `share`."""
        return super().shares(name, "all")

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the trained model."""
        return {"model": Message(("shared",))}

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the members' models."""
        return {"models": Message((self.options.members or "clients", "shared"))}

    def trained(self, client: Client) -> None:
        """Send the trained model and, where it is asked for, its validation loss."""
        client.send("model", client.shared.pack(client.model).cpu().numpy())
        judged = self.options.members > 0 and self.options.selection == "validation"
        loss = client.validation_loss() if judged else 0.0
        client.send("validation_loss", np.nan_to_num(loss, nan=_LARGEST_LOSS))

    def decide(self, server: Server) -> None:
        """Tell the members' models."""
        clients, models, members = server.participants, server.messages["model"], self.options.members
        told = np.full((members or len(server.group), models.shape[1]), np.nan, np.float32)
        if members:
            best = np.argsort(-self._scores(server), kind="stable")[:members]
            told[: len(best)] = models[np.sort(best)]
        else:
            told[clients] = models
        server.tell("models", told)

    def _scores(self, server: Server) -> Any:
        """Return by what the participants' models are selected, the largest first, [k]."""
        clients = server.participants
        if self.options.selection == "samples":
            return server.samples[clients]
        if self.options.selection == "random":
            return generator(key(server.seed, Purpose.CHOOSING, server.round)).random(len(clients))
        return -server.reports["validation_loss"][clients]

    def predict(self, client: Evaluated) -> Any:
        """Return the logarithms of the members' mean probabilities, once there are members."""
        models, total, members = client.incoming["models"], None, 0
        for row in () if models is None else models:
            if not bool(row.isnan().any()):
                member = client.model.clone()
                client.shared.unpack(row, member)
                own = client.outputs(at=member).log_softmax(dim=1)
                total, members = own if total is None else total.logaddexp(own), members + 1
        return None if total is None else total - math.log(members)
