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

from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Ints
from fedmpi.algorithms.capabilities import Prototypes
from fedmpi.algorithms.program import Batch, Client


class FedProtoOptions(AlgorithmOptions):
    """Options of FedProto."""

    name: Literal["fedproto"] = "fedproto"
    attraction: float = Field(1.0, ge=0)
    """The paper's lambda: weight of the distance to the global prototypes."""
    predict: Literal["prototypes", "classifier"] = "prototypes"
    """What decides on a held-out graph: the nearest global prototype, or the client's head."""


class FedProto(Prototypes, Algorithm):
    """Every client has a model of its own, whose embeddings are drawn to common class prototypes."""

    name: ClassVar[str] = "fedproto"
    paper: ClassVar[str] = "Tan et al., AAAI 2022, Algorithm 1"
    Options: ClassVar[type[AlgorithmOptions]] = FedProtoOptions
    options: FedProtoOptions
    communicates: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = True
    reads_embeddings: ClassVar[bool] = True

    @property
    def predicts_by_prototypes(self) -> bool:
        """Whether the option says so."""
        return self.options.predict == "prototypes"

    def train(self, client: Client) -> None:
        """Train with Eq. 7's second term once there are prototypes."""
        prototypes = client.prototypes

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

    def global_prototypes(self, means: npt.NDArray[np.float32], counts: Ints) -> npt.NDArray[np.float32]:
        """Return the mean of each class weighted by graphs; NaN for classes that no participant has."""
        sums = (means.astype(np.float64) * counts[:, :, None]).sum(axis=0)
        total = counts.sum(axis=0)[:, None]
        found = np.where(total > 0, sums / np.maximum(total, 1), np.nan)
        return found.astype(np.float32)
