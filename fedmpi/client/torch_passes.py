"""Training steps and evaluation on a client's data by torch's autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.program import Nodes
from fedmpi.client.node_passes import every_node, nodes_of
from fedmpi.client.passes import Embedded, Pass, Supervised, Work, topology_counts
from fedmpi.errors import BadInput, RankFailed
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet, Int, Topology
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.models.counts import GraphCounts, ModelFlops
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import Task

Loss = Callable[..., Tensor]
"""Takes outputs of a batch, and of those beside it, to a scalar."""

_MOST_SINGLE = 8192
"""Training graphs of a client up to which batches of one are kept; about 20 kB each."""


class TorchPasses(Supervised):
    """Passes by torch's autograd: CSR products on any device, or torch-geometric as reference."""

    late = True

    def __init__(
        self,
        train: GraphSet,
        held_out: GraphSet,
        model: FlatModel,
        kernels: str,
        flops: ModelFlops,
        task: Task,
    ) -> None:
        self._task, self._model, self._kernels, self._flops = task, model, kernels, flops
        self.graphs = train
        self._single: dict[int, Batch] = {}
        super().__init__(train, held_out)

    def _part(self, graphs: GraphSet) -> Batch:
        return Batch.of(graphs, self._model.parameters.device)

    @cached_property
    def _whole(self) -> Batch:
        return self._part(self.graphs)

    def batch(self, graphs: Int | None) -> Any:
        """Return training graphs on the device; single graphs are prepared once, up to `_MOST_SINGLE`."""
        if graphs is None:
            return self._whole
        if len(graphs) != 1 or self.graphs.num_graphs > _MOST_SINGLE:
            return self._part(self.graphs.take(graphs))
        graph = int(graphs[0])
        if graph not in self._single:
            self._single[graph] = self._part(self.graphs.take(graphs))
        return self._single[graph]

    def step(
        self,
        batch: Any,
        streams: DropoutStreams,
        term: EmbeddingTerm | None = None,
        loss_of: Loss | None = None,
        beside: Sequence[Batch] = (),
        *,
        alone: bool = False,
    ) -> Pass:
        """Run forward and backward.

        `loss_of` the outputs takes the place of the task's loss; `alone`, the term does. It takes outputs of
        batches `beside` as well, whose passes have the same dropout and leave no running statistics.
        """
        batch = self._task.step_batch(batch, streams)
        executed = sum(self._executed(each, training=True) for each in (batch, *beside))
        nothing: AbstractContextManager[list[Tensor]] = nullcontext([])
        with nothing if term is None else _embeddings_of(self._model.module) as embeddings:
            logits = self._task.outputs(self._model.module, batch, streams, self._kernels)
        statistics = self._model.parameters[self._model.trained :].clone() if beside else None
        others = [self._task.outputs(self._model.module, each, streams, self._kernels) for each in beside]
        added = None if term is None else term(embeddings[0])
        loss = self._loss(logits, batch) if loss_of is None else loss_of(logits.clone(), *others)
        if added is not None:
            loss = added if alone else loss + added
        self._model.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        if statistics is not None:
            self._model.parameters[self._model.trained :] = statistics
        outcome = self._task.outcome(logits.detach(), batch.labels)
        counted = sum(self._flops.training(self._counts_of(each)).total for each in (batch, *beside))
        return Pass(outcome, counted, executed)

    def _loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss over a batch's labels, by the weights of its graphs where it has any."""
        if batch.example_weights is None:
            return self._task.loss(outputs, batch.labels)
        losses, known = self.losses(outputs, batch.labels), ~batch.labels.isnan()
        weights = (batch.example_weights if losses.dim() == 1 else batch.example_weights[:, None]) * known
        return (weights * losses).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the task's loss of each label; 0 where it is missing."""
        labels = labels.to(outputs.dtype) if labels.is_floating_point() else labels
        missing = labels.isnan()
        found = self._task.losses(outputs, labels.masked_fill(missing, 0))
        has_gaps = missing.shape == found.shape  # probabilities of classes have none
        return found.masked_fill(missing, 0.0) if has_gaps else found

    def soft_labels(self, outputs: Tensor) -> Tensor:
        """Return what outputs predict, as labels."""
        return self._task.soft_labels(outputs)

    def slope(self, batch: Batch, loss_of: Loss) -> Embedded:
        """Return the gradient of a loss of the outputs, without dropout, by the nodes' features [N, d]."""
        executed = self._executed(batch, training=True)
        shift = torch.zeros_like(batch.features).requires_grad_()
        outputs = self._task.outputs(self._model.module, batch.moved(shift), None, self._kernels)
        (gradient,) = torch.autograd.grad(loss_of(outputs), shift)
        return Embedded(gradient, self._flops.training(self._counts_of(batch)).total, executed)

    def judged(self, outputs: Tensor) -> Outcome:
        """Return what outputs for all held-out examples are scored by."""
        labels = torch.cat([part.labels for part in self.held_out.parts()])
        return self._task.outcome(outputs, labels)

    @torch.no_grad()
    def _judge(self, part: Batch) -> Pass:
        executed = self._executed(part, training=False)
        outcome, more = self._task.judge(self._model.module, part, self._kernels)
        counted = self._flops.forward(self._counts_of(part)).total
        return Pass(outcome, counted + more, executed + more)

    def _embed(self, part: Batch) -> Embedded:
        return self.forward(part, head=False)

    def _counts_of(self, batch: Batch) -> GraphCounts:
        return replace(counts_of(batch), outputs=self._task.scores_each)

    def _executed(self, batch: Batch, *, training: bool) -> int:
        """Return the FLOPs that the kernels are about to do; a network that sums by twins has fewer edges."""
        counts = self._counts_of(batch)
        if self._kernels == "csr" and getattr(self._model.module, "by_twins", False):
            counts = replace(counts, edges=batch.num_entries_by_twins)
        kept = batch.keeps_propagated
        return self._flops.executed(counts, training=training, kernels=self._kernels, propagated=kept)

    @torch.no_grad()
    def forward(self, batch: Batch, *, head: bool) -> Embedded:
        """Run the network without dropout, up to its head or with it; a whole pass is counted."""
        executed, module = self._executed(batch, training=False), self._model.module
        if head:
            rows = self._task.outputs(module, batch, None, self._kernels)
        else:
            rows = module.embed(batch, None, self._kernels)  # type: ignore[operator]
        return Embedded(rows, self._flops.forward(self._counts_of(batch)).total, executed)

    def nodes(self, work: list[Work]) -> Nodes:
        """Return outputs for all nodes of the training graphs; the pass and later sums go to `work`.

        Raises
        ------
        RankFailed
            Examples are no nodes.
        """
        places = self.graphs.places
        if places is None or places.ndim != 1:
            raise RankFailed(
                "`nodes` was asked for, and examples are no nodes: name the tasks of nodes in `tasks`"
            )
        batch = self._whole
        everything = torch.arange(batch.topology.num_nodes, device=batch.x.device)
        found = self.forward(batch.with_examples(everything, torch.zeros_like(everything)), head=True)
        work.append(found)
        logits = torch.as_tensor(found.rows).cpu().numpy()
        return nodes_of(self.graphs, logits, lambda rows: batch.normalised_sum(rows.to(batch.x.device)), work)

    def mean_state(self, topology: Topology, features: npt.NDArray[np.float32]) -> Embedded:
        """Return the mean over the nodes of another graph of what the head would see of each.

        Parameters
        ----------
        topology : Topology
        features : float32 [N, width]
        """
        found = self._embed(self._part(every_node(topology, features)))
        return replace(found, rows=found.rows.double().mean(dim=0).cpu().numpy())


@contextmanager
def _embeddings_of(module: Any) -> Iterator[list[Tensor]]:
    """Collect what a network's `embed` returns while its `forward` runs."""
    found, embed = list[Tensor](), module.embed

    def noted(*arguments: Any, **named: Any) -> Tensor:
        found.append(embed(*arguments, **named))
        return found[-1]

    module.embed = noted
    try:
        yield found
    finally:
        del module.embed
    if len(found) != 1:
        kind = type(module).__name__
        raise BadInput(f"{kind}.forward must call embed once, for a loss that is made of embeddings")


def counts_of(batch: Batch) -> GraphCounts:
    """Return what a pass over a batch works on, with a score of every class."""
    counts = topology_counts(batch.topology)
    return replace(counts, examples=batch.num_places, entries=batch.num_entries)
