"""Training steps of unsupervised objectives on a client's data: losses in torch, encoders by any kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.passes import Pass, Passes
from fedmpi.client.view_batches import Step, ViewBatches, counts_of
from fedmpi.graphs.packed import Int
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome
from fedmpi.objectives import contrast
from fedmpi.objectives.flops import ObjectiveFlops
from fedmpi.objectives.unsupervised import Frozen, Network, OneEncoder


@dataclass(eq=False)
class UnsupervisedPasses(Passes):
    """Passes of one client.

    Frozen copies are encoded once for all graphs of the client, the received model's once per round
    and the previous epoch's once per epoch, which is less work than once per batch and the same:
    in evaluation a graph's encoding does not depend on the others.

    Parameters
    ----------
    batches : ViewBatches
        Of the client's graphs.
    model : FlatModel
        Workspace.
    objective : OneEncoder
    flops : ObjectiveFlops
    network : Network
        Of the model, or compiled kernels bound to it.
    by_epoch : bool
        Whether the previous model is that of the epoch before.
    """

    batches: ViewBatches
    model: FlatModel
    objective: OneEncoder
    flops: ObjectiveFlops
    network: Network
    by_epoch: bool
    _received: Tensor | None = None
    _previous: Tensor | None = None
    _received_vectors: Tensor | None = None
    _difference: Tensor | None = None
    _encoded: int = 0  # FLOPs of the step's frozen copies

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs with their views; None stands for all, prepared once."""
        return self.batches.take(graphs)

    def begin_round(self, last: Tensor | None) -> None:
        """Keep a copy of the received model, where the objective asks for it."""
        parameters = self.model.parameters
        self.end_round()
        if self.objective.needs_received:
            self._received = parameters.clone()
        if last is not None:
            self._previous = last.clone()

    def end_epoch(self) -> None:
        """Keep a copy of the model for the next epoch, where the objective asks for it."""
        if self.objective.needs_previous and self.by_epoch:
            self._previous, self._difference = self.model.parameters.clone(), None

    def end_round(self) -> None:
        """Let go of the copies: every client of a rank has its own."""
        self._received = self._previous = self._received_vectors = self._difference = None
        self.batches.end_round()

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""
        assert isinstance(batch, Step)
        self._encoded = 0
        frozen = self._frozen(batch)
        self.model.gradient.zero_()
        loss = self.objective.loss(self.network, batch.views, frozen)
        loss.backward()  # type: ignore[no-untyped-call]
        counts = counts_of(batch.views)
        copies = (frozen.received is not None) + 2 * (frozen.difference is not None)
        counted = self.flops.step(*counts, executed=False).total
        if copies:
            counted += copies * self.flops.encoding(counts[0], executed=False).total
        executed = self._encoded + self.batches.step_flops(batch.views)
        graphs = batch.views.original.num_graphs
        return Pass(_outcome(np.full(graphs, float(loss.detach()))), counted, executed)

    @torch.no_grad()
    def evaluate(self) -> Pass:
        """Return vectors of all the client's graphs."""
        vectors, counted, executed = [], 0, 0
        for views in self.batches.all_parts:
            vectors.append(self.objective.vectors(self.network, views).cpu().numpy())
            counted += self.flops.vectors(*counts_of(views), executed=False).total
            executed += self.batches.vectors_flops(views)
        return Pass(_outcome(np.zeros(0)), counted, executed, np.concatenate(vectors))

    def _frozen(self, step: Step) -> Frozen:
        """Return the frozen copies' vectors of a batch; none before there is a previous model."""
        if self._received is None or (self.objective.needs_previous and self._previous is None):
            return Frozen()
        rows = self.batches.rows_of(step)
        if self._difference is not None:
            return Frozen(difference=_rows(self._difference, rows))
        if self._received_vectors is None:
            self._received_vectors = torch.cat(list(self._vectors_of(self._received)))
        if self._previous is None:
            return Frozen(received=_rows(self._received_vectors, rows))
        # Part by part, so that the previous model's vectors never have a row for every node.
        parts, begin = [], 0
        for vectors in self._vectors_of(self._previous):
            parts.append(contrast.apart(self._received_vectors[begin : begin + len(vectors)], vectors))
            begin += len(vectors)
        self._difference = torch.cat(parts)
        if not self.by_epoch:
            self._received_vectors = None  # the previous model stays, and the difference with it
        return Frozen(difference=_rows(self._difference, rows))

    @torch.no_grad()
    def _vectors_of(self, copy: Tensor) -> Iterator[Tensor]:
        """Yield a frozen copy's vectors of the training graphs, part by part."""
        model = self.model
        present = model.parameters.clone()
        for batch in self.batches.train_parts:
            model.parameters.copy_(copy)
            vectors = self.objective.contrasted(self.network, batch)
            model.parameters.copy_(present)
            self._encoded += self.batches.encoding_flops(batch)
            yield vectors


def _outcome(losses: npt.NDArray[np.float64]) -> Outcome:
    """Return losses of graphs that have no class to hit."""
    return Outcome(losses, np.zeros(len(losses), np.uint8), scores=np.zeros((len(losses), 0), np.float32))


def _rows(whole: Tensor, numbers: Int | None) -> Tensor:
    """Return some rows of the copies' vectors; None stands for all."""
    return whole if numbers is None else whole[torch.from_numpy(numbers).to(whole.device)]
