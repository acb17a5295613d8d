"""FLOPs of a case's model and objective: by their formula, or counted by torch on one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from fedmpi.case.schema import Case
from fedmpi.client.view_batches import TorchBatches, counts_of
from fedmpi.graphs.diffusion import ViewedGraphs
from fedmpi.models.counted import CountedFlops, count, count_model, scaled
from fedmpi.models.counts import Flops, GraphCounts
from fedmpi.models.options import MODELS, Shape
from fedmpi.objectives import contrast
from fedmpi.objectives.flops import ViewCounts
from fedmpi.objectives.options import OBJECTIVES, ObjectiveOptions
from fedmpi.objectives.unsupervised import Frozen, Network, network_of


@dataclass(frozen=True)
class CountedObjective:
    """`ObjectiveFlops` in proportion to one counted batch, for objectives without a formula."""

    options: ObjectiveOptions
    needs: tuple[bool, bool]
    batch: GraphCounts
    of_step: Flops
    of_vectors: Flops
    of_encoding: Flops

    def step(self, original: ViewCounts, other: ViewCounts | None, *, executed: bool) -> Flops:
        """Return the FLOPs of one forward and backward pass; frozen copies are counted apart."""
        return self._scaled(self.of_step, original, executed)

    def vectors(self, original: ViewCounts, other: ViewCounts | None, *, executed: bool) -> Flops:
        """Return the FLOPs of embedding graphs."""
        return self._scaled(self.of_vectors, original, executed)

    def encoding(self, view: ViewCounts, *, executed: bool) -> Flops:
        """Return the FLOPs of one frozen copy's vectors of a batch."""
        return self._scaled(self.of_encoding, view, executed)

    def copies(self, local_epochs: int) -> int:
        """Return how often a round encodes a client's graphs by frozen copies of the model."""
        received, previous = self.needs
        if previous:
            return 2 if self.options.keeps_last_round else local_epochs * (local_epochs > 1)
        return int(received)

    def _scaled(self, flops: Flops, view: ViewCounts, executed: bool) -> Flops:
        flops_of_view = scaled(flops, self.batch, view.counts)
        return Flops(flops_of_view.dense, (2 if executed else 1) * flops_of_view.sparse)


def flops_of(case: Case, shape: Shape, batch: Callable[[], ViewedGraphs]) -> Any:
    """Return the counts of a client's passes: ModelFlops, or ObjectiveFlops where it is unsupervised.

    Parameters
    ----------
    batch : callable
        Returns the graphs to count on, where there is no formula: the same on every rank.
    """
    with MODELS.guarded(type(case.model)), OBJECTIVES.guarded(type(case.objective)):
        if case.objective.supervised:
            formula = case.model.flops(shape)
            return formula or count_model(network_of(case.objective, case.model, shape), batch().graphs)
        return case.objective.flops(case.model, shape) or _count_objective(case, shape, batch())


def is_counted(flops: Any) -> bool:
    """Return whether torch counted these FLOPs."""
    return isinstance(flops, CountedFlops | CountedObjective)


def _count_objective(case: Case, shape: Shape, graphs: ViewedGraphs) -> CountedObjective:
    objective = case.objective.make()
    network = Network.of(network_of(case.objective, case.model, shape))
    batches = TorchBatches(graphs, graphs, objective, None)  # type: ignore[arg-type]  # it is asked for no counts
    views = batches.take(None).views
    needs, frozen, encoding = (objective.needs_received, objective.needs_previous), Frozen(), Flops(0, 0)
    with torch.no_grad():
        vectors = count(lambda: objective.vectors(network, views))
        if any(needs):
            encoding = count(lambda: objective.contrasted(network, views.original))
            received = objective.contrasted(network, views.original)
            frozen = Frozen(received, contrast.apart(received, received) if needs[1] else None)
    step = count(lambda: objective.loss(network, views, frozen).backward())
    return CountedObjective(case.objective, needs, counts_of(views)[0].counts, step, vectors, encoding)
