"""FedAS: a client aligns the received body with its own last one, and well-informed clients weigh more.

Yang, Huang and Ye, "FedAS: bridging inconsistency in personalized federated learning", CVPR 2024. The body
(all layers up to the pooling) is averaged, the head stays with the client, as with FedPer.

*Parameter alignment.* With p_c the mean embedding of the client's graphs of class c by the model that it
trained last, a participant takes steps of the received body by the gradient of

    sum over the classes c of a batch of the mean squared difference of f(x) and p_c, x of class c,

for `alignment_epochs`, and trains body and head then.

*Client synchronisation.* The server averages bodies with weights tr(F_i) / sum_j tr(F_j). F_i is the
client's Fisher information after training. Its trace is estimated by sum_b ||g_b||^2, with g_b the gradient
of the loss of batch b by all parameters.

Both terms are those of the released code, whose alignment takes plain gradient steps of length 0.01; here
they are the case's optimizer's, with moments of their own. There f and g_b are without dropout, and the
prototypes' batches have 16 examples; here a pass has the dropout and the batches of training, but for the
prototypes', which are without dropout. A client that takes part for the first time has no last model, and
aligns nothing; in the released code it aligns with its random initial one. What is evaluated is the model
that a client trained last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.algorithms.fedper import HEAD, FedPer
from fedmpi.algorithms.program import Batch, Client, Evaluated, Memory, Server, Size, Tensors


class FedAsOptions(AlgorithmOptions):
    """Options of FedAS."""

    name: Literal["fedas"] = "fedas"
    alignment_epochs: int = Field(1, ge=1)
    """Epochs of the alignment; released: 1."""


class FedAs(FedPer):
    """FedPer whose clients align the received body, and are averaged by their Fisher information."""

    name = "fedas"
    paper = "Yang et al., CVPR 2024"
    Options = FedAsOptions
    options: FedAsOptions
    needs_labels = True
    needs_classes = True
    reads_embeddings = True
    numbers = ("trace",)
    decides = frozenset({"weights"})

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """Return the model that the client trained last."""
        return {"last": Memory("model", start=None, judged=True)}

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """Return those of the alignment."""
        return {"alignment": "model"}

    def train(self, client: Client) -> None:
        """Align the received body with the last one, and train."""
        if (last := client.memory["last"]) is not None:
            prototypes = class_means(client.embeddings(at=last), client.labels)
            self._align(client, prototypes)
        client.run_epochs()
        client.memory["last"] = client.model

    def _align(self, client: Client, prototypes: Mapping[int, Any]) -> None:
        """Descend on the distances from the prototypes."""

        def apart(batch: Batch, current: Any) -> Any:
            return distance(current, batch.labels, prototypes)

        for batch in client.batches(self.options.alignment_epochs):
            gradient = client.gradient(batch, term=apart)
            client.step(client.model, gradient, moments="alignment", frozen=_of_head)

    def trained(self, client: Client) -> None:
        """Send tr(F)."""
        model, trained, trace = client.model.clone(), client.trained, 0.0
        for batch in client.sample(1.0):
            trace += float(client.gradient(batch, at=model)[:trained].double().square().sum())
        client.send("trace", trace)

    def decide(self, server: Server) -> None:
        """Weigh the participants' updates by the traces."""
        for members in server.groups():
            traces = np.maximum(server.reports["trace"][members], np.finfo(np.float32).tiny)
            server.weigh(members, traces, float(traces.sum()))

    def evaluated(self, client: Evaluated) -> Any:
        """Return the model that the client trained last."""
        last = client.memory["last"]
        return client.model if last is None else last

    @classmethod
    def passes(cls, options: Any, local_epochs: int) -> tuple[int, int]:
        """Return the epochs of both and of the trace, and beside them the pass for the prototypes."""
        return int(options.alignment_epochs) + local_epochs + 1, 1


def _of_head(name: str) -> bool:
    return name.startswith(HEAD)


def class_means(rows: Any, labels: Any) -> dict[int, Any]:
    """Return the mean row of each class that there is, float32 [h].

    Parameters
    ----------
    rows : float32 [n, h], torch
    labels : int64 [n], NumPy
    """
    return {int(label): rows[np.flatnonzero(labels == label)].mean(dim=0) for label in np.unique(labels)}


def distance(current: Any, labels: Any, prototypes: Mapping[int, Any]) -> Any:
    """Return the sum over a batch's classes of the mean squared difference from the class's prototype."""
    apart = [(current[labels == label] - prototypes[int(label)]).square().mean() for label in labels.unique()]
    return sum(apart)
