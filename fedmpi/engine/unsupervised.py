"""Training steps of unsupervised objectives on a client's data, by torch's autograd on CSR products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.engine.passes import Pass
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.diffusion import normalised
from fedmpi.graphs.packed import Int
from fedmpi.graphs.views import ViewedGraphs
from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.flops import GraphCounts
from fedmpi.models.outcome import Outcome
from fedmpi.objectives import contrast
from fedmpi.objectives.flops import ObjectiveFlops, ViewCounts
from fedmpi.objectives.unsupervised import Frozen, Mvgrl, Objective, Views


@dataclass(frozen=True)
class _Step:
    """A batch's views, and which training graphs they are (None: all, in order)."""

    views: Views
    numbers: Int | None


class UnsupervisedPasses:
    """Passes of one client.

    Frozen copies are encoded once for all graphs of the client, the received model's once per round
    and the previous epoch's once per epoch, which is less work than once per batch and the same:
    in evaluation a graph's encoding does not depend on the others.

    Parameters
    ----------
    train, everything : ViewedGraphs
        Training graphs, and all graphs of the client.
    model : FlatModel
        Workspace.
    objective : Objective
    flops : ObjectiveFlops
    """

    def __init__(
        self,
        train: ViewedGraphs,
        everything: ViewedGraphs,
        model: FlatModel,
        objective: Objective,
        flops: ObjectiveFlops,
        *,
        by_epoch: bool,
    ) -> None:
        self._train, self._everything = train, everything
        self._model, self._objective, self._flops = model, objective, flops
        self._by_epoch = by_epoch
        self._whole: _Step | None = None
        self._received: Tensor | None = None
        self._previous: Tensor | None = None
        self._heard: Tensor | None = None
        self._away: Tensor | None = None

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs with their views on the device; None stands for all, prepared once."""
        if graphs is not None:
            return _Step(self._views(self._train.take(graphs)), graphs)
        if self._whole is None:
            self._whole = _Step(self._views(self._train), None)
        return self._whole

    def begin_round(self, last: Tensor | None) -> None:
        """Keep a copy of the received model, where the objective asks for it."""
        parameters = self._model.parameters
        self.end_round()
        if self._objective.needs_received:
            self._received = parameters.clone()
        if last is not None:
            self._previous = last.clone()

    def end_epoch(self) -> None:
        """Keep a copy of the model for the next epoch, where the objective asks for it."""
        if self._objective.needs_previous and self._by_epoch:
            self._previous, self._away = self._model.parameters.clone(), None

    def end_round(self) -> None:
        """Let go of the copies: every client of a rank has its own."""
        self._received = self._previous = self._heard = self._away = None

    def step(self, batch: Any, streams: DropoutStreams) -> Pass:
        """Run forward and backward."""
        assert isinstance(batch, _Step)
        executed = _Tally()
        frozen = self._frozen(batch.numbers, executed)
        self._model.gradient.zero_()
        loss = self._objective.loss(self._model.module, batch.views, frozen)
        loss.backward()  # type: ignore[no-untyped-call]
        counts = _counts(batch.views)
        copies = (frozen.received is not None) + 2 * (frozen.away is not None)
        counted = self._flops.step(*counts, executed=False).total
        for _ in range(copies):
            counted += self._flops.encoding(counts[0], executed=False).total
        executed.total += self._flops.step(*counts, executed=True).total
        graphs = batch.views.original.num_graphs
        return Pass(_outcome(np.full(graphs, float(loss.detach()))), counted, executed.total)

    @torch.no_grad()
    def evaluate(self) -> Pass:
        """Give vectors to all the client's graphs."""
        found, counted, executed = [], 0, 0
        for views in self._all_parts:
            found.append(self._objective.vectors(self._model.module, views).cpu().numpy())
            counts = _counts(views)
            counted += self._flops.vectors(*counts, executed=False).total
            executed += self._flops.vectors(*counts, executed=True).total
        return Pass(_outcome(np.zeros(0)), counted, executed, np.concatenate(found))

    @cached_property
    def _all_parts(self) -> list[Views]:
        """What vectors are given to: all graphs, some at a time, with the other views where these count."""
        pairs = isinstance(self._objective, Mvgrl)
        return [self._views(part if pairs else part.plain) for part in self._everything.parts()]

    @cached_property
    def _train_parts(self) -> list[Batch]:
        """Training graphs as they are, some at a time, as frozen copies see them."""
        if self._train is self._everything:
            return [views.original for views in self._all_parts]
        device = self._model.parameters.device
        return [Batch.of(part.graphs, device) for part in self._train.parts()]

    def _views(self, part: ViewedGraphs) -> Views:
        original = Batch.of(part.graphs, self._model.parameters.device)
        diffused = None if part.diffused is None else WeightedBatch.view_of(original, part.diffused)
        if not isinstance(self._objective, Mvgrl):
            return Views(original, diffused)
        return Views(original, diffused, WeightedBatch.view_of(original, normalised(original.topology)))

    def _frozen(self, numbers: Int | None, executed: _Tally) -> Frozen:
        """Return what the frozen copies say of a batch; nothing before there is a previous model."""
        if self._received is None or (self._objective.needs_previous and self._previous is None):
            return Frozen()
        if self._away is not None:
            return Frozen(away=self._rows(self._away, numbers))
        if self._heard is None:
            self._heard = torch.cat(list(self._said(self._received, executed)))
        if self._previous is None:
            return Frozen(received=self._rows(self._heard, numbers))
        # Part by part, so that the previous model's vectors never have a row for every node.
        parts, begin = [], 0
        for said in self._said(self._previous, executed):
            parts.append(contrast.apart(self._heard[begin : begin + len(said)], said))
            begin += len(said)
        self._away = torch.cat(parts)
        if not self._by_epoch:
            self._heard = None  # the previous model stays, so nothing is apart from it again
        return Frozen(away=self._rows(self._away, numbers))

    @torch.no_grad()
    def _said(self, copy: Tensor, executed: _Tally) -> Iterator[Tensor]:
        """Yield what a copy says of the training graphs, part by part."""
        model = self._model
        present = model.parameters.clone()
        for batch in self._train_parts:
            model.parameters.copy_(copy)
            said = self._objective.contrasted(model.module, batch)
            model.parameters.copy_(present)
            executed.total += self._flops.encoding(_counts(Views(batch))[0], executed=True).total
            yield said

    def _rows(self, whole: Tensor, numbers: Int | None) -> Tensor:
        """Return the rows of a batch's nodes or graphs."""
        if numbers is None:
            return whole
        picked = self._train.graphs.topology.nodes_of(numbers) if self._objective.by_node else numbers
        return whole[torch.from_numpy(picked).to(whole.device)]


class _Tally:
    """FLOPs done so far."""

    def __init__(self) -> None:
        self.total = 0


def _outcome(losses: npt.NDArray[np.float64]) -> Outcome:
    """Return losses of graphs that have no class to hit."""
    return Outcome(losses, np.zeros(len(losses), np.uint8), scores=np.zeros((len(losses), 0), np.float32))


def _counts(views: Views) -> tuple[ViewCounts, ViewCounts | None]:
    """Return what the first view works on (MVGRL's is the weighted adjacency), and the diffused one."""
    first = views.original if views.adjacency is None else views.adjacency
    diffused = None if views.diffused is None else view_counts(views.diffused)
    return view_counts(first), diffused


def view_counts(batch: Batch) -> ViewCounts:
    """Return what a pass over one view works on."""
    t = batch.topology
    counts = GraphCounts(t.num_graphs, t.num_nodes, t.num_edges)
    return ViewCounts(counts, isinstance(batch, WeightedBatch))
