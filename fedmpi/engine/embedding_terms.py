"""The term of a client's local loss that an algorithm makes of embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.algorithms.capabilities import Embeddings
from fedmpi.engine.capability_hooks import EmbeddingLoss
from fedmpi.engine.compiled_passes import CompiledPasses
from fedmpi.engine.kept import PROTOTYPES
from fedmpi.engine.passes import Embedded, Pass
from fedmpi.engine.torch_passes import TorchPasses
from fedmpi.graphs.packed import Int
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.models.dropout import DropoutStreams

if TYPE_CHECKING:
    from fedmpi.engine.clients import Client


class EmbeddingTerms:
    """Terms of one client's batches in one round.

    Frozen models embed all training graphs once per round: without dropout a graph's embedding does not
    depend on its batch.

    Attributes
    ----------
    work : list of Embedded
        Passes of the frozen models.

    Parameters
    ----------
    hooks : EmbeddingLoss
    client : Client
        Its workspace holds the received model.
    last : float32 [length] or None
        Parameters at the end of the client's last round.
    """

    def __init__(self, hooks: EmbeddingLoss, client: Client, last: Tensor | None) -> None:
        passes = client.passes
        assert isinstance(passes, CompiledPasses | TorchPasses)  # checked with the suite
        self._hooks, self._passes, self._model = hooks, passes, client.model
        self.work: list[Embedded] = []
        self._labels = torch.from_numpy(np.ascontiguousarray(passes.training_labels))
        present = client.model.parameters.clone()
        self._received = self._embeddings(present) if hooks.needs_received else None
        self._previous = self._embeddings(last) if hooks.needs_previous and last is not None else None
        client.model.parameters.copy_(present)
        kept = client.kept.get(PROTOTYPES)
        known = kept is not None and client.prototypes is not None and not bool(torch.isnan(kept).all())
        self._prototypes = None
        if known and kept is not None and client.prototypes is not None:
            self._prototypes = kept.view(client.prototypes.classes, -1)

    def _embeddings(self, parameters: Tensor) -> Tensor:
        """Return a model's embeddings of all training graphs, float32 [n, h]."""
        self._model.parameters.copy_(parameters)
        rows = []
        for part in self._passes.embedded():
            self.work.append(part)
            rows.append(torch.as_tensor(part.rows).clone())
        return torch.cat(rows)

    def step(self, graphs: Int | None, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward with the term of a batch of training graphs; None stands for all."""
        return self._passes.step(batch, streams, self._of(graphs))

    def _of(self, graphs: Int | None) -> EmbeddingTerm:
        numbers = slice(None) if graphs is None else torch.from_numpy(graphs)

        def of_batch(rows: Tensor | None) -> Tensor | None:
            return None if rows is None else rows[numbers]

        def term(current: Tensor) -> Tensor | None:
            labels = self._labels[numbers].to(current.device)
            received, previous = of_batch(self._received), of_batch(self._previous)
            batch = Embeddings(current, labels, received, previous, self._prototypes)
            found: Tensor | None = self._hooks.embedding_loss(batch)
            return found

        return term
