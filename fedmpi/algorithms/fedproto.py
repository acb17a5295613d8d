"""FedProto: no weights travel; clients send the mean embedding of each class and get those of all clients.

Tan, Long, Liu, Zhou, Lu, Jiang and Zhang, "FedProto: federated prototype learning across heterogeneous
clients", AAAI 2022, Algorithm 1 and Eq. 4 to 7. The local loss gains lambda times the sum over the classes
of a batch of d(mean embedding of the class in the batch, global prototype), where d is the mean squared
difference of elements. Global prototypes are means weighted by graphs; Eq. 6 divides by the number of
clients once more, which would shrink them by that factor, and is left out. A held-out graph gets the class
of the nearest global prototype, or with `predict = "classifier"` that of the client's own head.

The released code compares single embeddings with the prototypes instead of the batch's means, makes a
client's prototypes of the embeddings of its last epoch's steps, where here the trained model embeds all
training graphs without dropout, averages clients uniformly, chooses among the classes that a client has,
and reports both predictions. Its SGD has momentum 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Ints, Rows
from fedmpi.algorithms.program import Batch, Client, Evaluated, Message, Server
from fedmpi.models.options import ModelOptions, NetworkOptions


class FedProtoOptions(AlgorithmOptions):
    """Options of FedProto."""

    name: Literal["fedproto"] = "fedproto"
    attraction: float = Field(1.0, ge=0)
    """The paper's lambda: weight of the distance to the global prototypes."""
    predict: Literal["prototypes", "classifier"] = "prototypes"
    """What decides on a held-out graph: the nearest global prototype, or the client's head."""


class FedProto(Algorithm):
    """Every client has a model of its own, whose embeddings are drawn to common class prototypes."""

    name = "fedproto"
    paper = "Tan et al., AAAI 2022, Algorithm 1"
    Options = FedProtoOptions
    options: FedProtoOptions
    communicates = False
    needs_labels = True
    needs_classes = True
    reads_embeddings = True

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the mean embedding of each class, and its graphs."""
        assert isinstance(model, NetworkOptions)  # others embed no graphs
        return {"means": Message((classes, model.embedding)), "counts": Message((classes,), "i4")}

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the global prototypes."""
        return {"prototypes": self.messages(model, classes)["means"]}

    def train(self, client: Client) -> None:
        """Train with Eq. 7's second term once there are prototypes."""
        prototypes = client.incoming["prototypes"]

        def drawn(batch: Batch, current: Any) -> Any:
            return self.distance(current, batch.labels, prototypes)

        client.run_epochs(term=None if prototypes is None else drawn)

    def distance(self, current: Any, labels: Any, prototypes: Any) -> Any:
        """Return lambda times the distances of the batch's class means from the prototypes there are."""
        distances = []
        for label in labels.unique():
            prototype = prototypes[label]
            if not bool(prototype.isnan().any()):
                mean = current[labels == label].mean(dim=0)
                distances.append((mean - prototype).square().mean())
        return self.options.attraction * sum(distances) if distances else None

    def trained(self, client: Client) -> None:
        """Send the class means of the trained model's embeddings, and how many graphs they are of."""
        rows, classes = client.embeddings().cpu().double().numpy(), client.shape("counts")[0]
        counts = np.bincount(client.labels, minlength=classes)
        sums = np.zeros((classes, rows.shape[1]))
        np.add.at(sums, client.labels, rows)
        client.send("means", (sums / np.maximum(counts, 1)[:, None]).astype(np.float32))
        client.send("counts", counts.astype(np.int32))

    def decide(self, server: Server) -> None:
        """Tell the global prototypes."""
        means, counts = server.messages["means"], server.messages["counts"]
        server.tell("prototypes", global_prototypes(means, counts.astype(np.int64)))

    def predict(self, client: Evaluated) -> Any:
        """Return the class of the nearest prototype, if the option says so and there is one."""
        prototypes = client.incoming["prototypes"]
        if self.options.predict == "classifier" or prototypes is None:
            return None
        return nearest(client.embeddings().cpu(), prototypes.cpu())


def global_prototypes(means: Rows, counts: Ints) -> Rows:
    """Return the mean of each class weighted by graphs; NaN for classes that no participant has.

    Parameters
    ----------
    means : float32 [k, C, h]
    counts : int64 [k, C]
    """
    sums = (means.astype(np.float64) * counts[:, :, None]).sum(axis=0)
    total = counts.sum(axis=0)[:, None]
    found = np.where(total > 0, sums / np.maximum(total, 1), np.nan)
    return found.astype(np.float32)


def nearest(rows: Any, prototypes: Any) -> Any:
    """Return the class of the nearest prototype of each row, int64 [n]; those that are NaN are no class.

    Parameters
    ----------
    rows : float32 [n, h], torch
    prototypes : float32 [C, h], torch
    """
    return distances(rows, prototypes).argmin(dim=1)


def distances(rows: Any, prototypes: Any) -> Any:
    """Return the squared distance of each row from each prototype, float64 [n, C]; from NaN, infinity.

    Parameters
    ----------
    rows : float32 [n, h], torch
    prototypes : float32 [C, h], torch
    """
    apart = (rows[:, None].double() - prototypes.double()).square().sum(dim=2)
    return apart.nan_to_num(nan=float("inf"))
