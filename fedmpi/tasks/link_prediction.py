"""Link prediction: triples of a knowledge graph against corrupted ones; filtered ranks among all entities.

Training gives each triple (h, r, t) a partner whose head or tail is another entity of the client, drawn anew
in each step, and takes the binary cross-entropy of both scores. Held-out triples are ranked: the score of the
true tail among those of all entities of the client, without those that make another triple that the client
holds (Bordes et al. 2013), and the head likewise. Of equal scores half are counted as better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import ExampleKind, LabelKind, RawGraphs
from fedmpi.metrics.metric import HITS_1, HITS_3, HITS_10, MRR, Metric
from fedmpi.models.outcome import Outcome
from fedmpi.store.schema import held_out_losses, training_loss
from fedmpi.tasks.base import HELD_OUT, Bytes, Rows, Settings, Task, field_of, packed_scores

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.graphs.batch import Batch
    from fedmpi.models.dropout import DropoutStreams
    from fedmpi.models.outcome import Evaluation
    from fedmpi.partition.partition import ClientSplit

_AT_ONCE = 256
"""Triples that are ranked together; bounds memory."""
_CORRUPTED = 1 << 20
"""Layer whose stream of random words draws corrupted triples."""


class LinkPrediction(Task):
    """What travels is the rank of each held-out triple's tail and head.

    Labels of a step are relations; of a corrupted triple -1 minus its relation.
    """

    name: ClassVar[str] = "link-prediction"
    of: ClassVar[ExampleKind] = "edge"
    labels: ClassVar[LabelKind] = "classification"
    kernels: ClassVar[frozenset[str]] = frozenset({"csr"})
    relational: ClassVar[bool] = True
    scores_each: ClassVar[int | None] = 1
    metrics: tuple[Metric, ...] = (MRR, HITS_1, HITS_3, HITS_10)

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        super().__init__(case, raws, splits)
        self._sizes = np.array([[len(split.val), len(split.test)] for split in splits], np.int64)
        self.lengths = 8 * self._sizes.sum(axis=1)
        scores = [
            field_of(metric, metric.field(part), f"{metric.meaning} of all clients' {name} triples")
            for part, name in HELD_OUT.items()
            for metric in self.metrics
        ]
        self.fields = (training_loss("nat"), *held_out_losses("nat"), *scores)
        self._known: dict[int, tuple[Batch, _Known]] = {}

    def step_batch(self, batch: Batch, streams: DropoutStreams) -> Batch:
        """Return the triples of a step, then as many corrupted ones."""
        import torch

        assert batch.places is not None
        count, nodes = len(batch.places), batch.topology.num_nodes
        words = streams.words(_CORRUPTED, 2 * count)
        other = torch.from_numpy((words[:count] % np.uint64(nodes)).astype(np.int64))
        side = torch.from_numpy((words[count:] >> np.uint64(63)).astype(np.int64))
        wrong = batch.places.clone()
        wrong[torch.arange(count), side] = other
        places, labels = torch.cat([batch.places, wrong]), torch.cat([batch.labels, -1 - batch.labels])
        return batch.with_examples(places, labels)

    def outputs(self, module: Any, batch: Batch, streams: DropoutStreams | None, kernels: str) -> Tensor:
        """Return the score of each triple, [n, 1]."""
        import torch

        labels = batch.labels
        scores: Tensor = module.scores(batch, streams, torch.where(labels >= 0, labels, -1 - labels))
        return scores

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean binary cross-entropy of triples and corrupted ones, a scalar."""
        return _losses(outputs, labels).mean()

    def outcome(self, outputs: Tensor, labels: Tensor) -> Outcome:
        """Return losses (float64), and which triples are told from corrupted ones."""
        right = (outputs[:, 0] > 0) == (labels >= 0)
        losses = _losses(outputs.detach().double(), labels)
        return Outcome(losses.cpu().numpy(), right.cpu().numpy().astype(np.uint8))

    def judge(self, module: Any, batch: Batch, kernels: str) -> tuple[Outcome, int]:
        """Return ranks of held-out triples' tails and heads as scores [n, 2], and the FLOPs of ranking."""
        states, relations = module.states(batch, None), module.readout.weight
        assert batch.places is not None
        head, tail = batch.places.unbind(1)
        known, labels = self._known_of(batch), batch.labels
        ranks = [
            known.ranks(states, relations, *ends, labels, side)
            for side, ends in enumerate(((head, tail), (tail, head)))
        ]
        scores = (states[head] * relations[labels] * states[tail]).sum(dim=1, keepdim=True)
        losses = _losses(scores.double(), labels).cpu().numpy()
        hits = (scores[:, 0] > 0).cpu().numpy().astype(np.uint8)
        found = Outcome(losses, hits, np.ones(len(hits), np.int64), np.stack(ranks, axis=1))
        return found, 2 * 2 * len(hits) * states.numel()

    def _known_of(self, batch: Batch) -> _Known:
        """Return the triples that a batch of held-out ones must not be ranked against, made once."""
        if id(batch) not in self._known:
            self._known[id(batch)] = batch, _Known(batch)
        return self._known[id(batch)][1]

    def pack(self, client: int, found: Evaluation | None) -> Bytes:
        """Return the ranks of validation and test triples; NaN where the client was not evaluated."""
        return packed_scores(int(self.lengths[client]), found)

    def rows(self, gathered: Bytes) -> Rows:
        """Return the metrics over all evaluated clients' triples, tails and heads alike."""
        ranks = gathered.view(np.float32).reshape(-1, 2)
        place = np.repeat(np.tile([0, 1], len(self._sizes)), self._sizes.ravel())
        found: Rows = {}
        for number, part in enumerate(HELD_OUT):
            own = ranks[place == number].ravel().astype(np.float64)
            own = own[~np.isnan(own)]
            for metric in self.metrics:
                found[metric.field(part)] = np.array(_score(metric, own))
        return found


class _Known:
    """All triples of a client: those of its training edges and of a batch of held-out ones."""

    def __init__(self, batch: Batch) -> None:
        assert batch.places is not None
        heads, tails = batch.places.numpy().T
        held = np.stack([heads, batch.labels.numpy(), tails], axis=1)
        trained = [
            np.stack([sender.numpy(), np.full(len(sender), relation), receiver.numpy()], axis=1)
            for relation, sender, receiver in batch.by_relation
        ]
        triples = np.concatenate([*trained, held])
        self._many = int(triples[:, 1].max(initial=0)) + 1
        nodes = batch.topology.num_nodes
        self._others = [self._by(triples, nodes, *sides) for sides in ((0, 2), (2, 0))]

    def _by(self, triples: npt.NDArray[np.int64], nodes: int, given: int, other: int) -> Any:
        """Return a sparse matrix [N * R, N] of the known other ends by given end and relation."""
        from scipy.sparse import csr_array

        rows = triples[:, given] * self._many + triples[:, 1]
        ones = np.ones(len(triples), np.bool_)
        return csr_array((ones, (rows, triples[:, other])), (nodes * self._many, nodes))

    def ranks(
        self, states: Tensor, relations: Tensor, given: Tensor, wanted: Tensor, labels: Tensor, side: int
    ) -> npt.NDArray[np.float32]:
        """Return the rank of each wanted node among all nodes that make no other known triple, float32 [n].

        Parameters
        ----------
        states : float32 [N, h]
        relations : float32 [R, h]
        given, wanted : int64 [n]
            The end of each triple that is known, and the one that is ranked.
        labels : int64 [n]
            Relations.
        side : int
            0 where tails are ranked, 1 for heads.
        """
        import torch

        found = [np.zeros(0, np.float32)]
        for cut in range(0, len(given), _AT_ONCE):
            part = slice(cut, cut + _AT_ONCE)
            scores = (states[given[part]] * relations[labels[part]]) @ states.T
            true = scores.gather(1, wanted[part][:, None])
            rows = (given[part] * self._many + labels[part]).numpy()
            others = torch.from_numpy(~self._others[side][rows].toarray())
            better = (~(scores <= true) & others).sum(dim=1)  # NaN is never the better score
            equal = ((scores == true) & others).sum(dim=1)
            found.append((1 + better + 0.5 * equal).float().numpy())
        return np.concatenate(found)


def _losses(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the binary cross-entropy of each triple, [n]."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    wanted = (labels >= 0).to(outputs.dtype)
    return binary_cross_entropy_with_logits(outputs[:, 0], wanted, reduction="none")


def _score(metric: Metric, ranks: npt.NDArray[np.float64]) -> float:
    if not len(ranks):
        return float("nan")
    if metric == MRR:
        return float((1 / ranks).mean())
    return float((ranks <= {HITS_1: 1, HITS_3: 3, HITS_10: 10}[metric]).mean())
