"""The clients that a rank hosts: their data, their state, their training and evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.base import Algorithm
from fedmpi.clock import Stopwatch
from fedmpi.engine.case import Case
from fedmpi.engine.optimizer import AdamState, adam_step
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel, SharedPart
from fedmpi.models.flops import GinFlops, GraphCounts
from fedmpi.objectives import supervised
from fedmpi.seeds import Purpose, key, permutation

_LARGEST_EVALUATION = 1024
"""Graphs per forward pass of an evaluation; bounds memory."""


@dataclass(frozen=True)
class Training:
    """What one client's local training did in a round."""

    samples: int
    steps: int
    loss: float
    accuracy: float
    gradient_norm: float
    model_flops: int
    executed_flops: int
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Evaluation:
    """Loss and accuracy on one split, and which of its graphs are classified rightly (uint8)."""

    loss: float
    accuracy: float
    hits: npt.NDArray[np.uint8]


@dataclass
class Client:
    """One client: packed splits, parameters and optimizer state, all by client id.

    Attributes
    ----------
    id : int
        Place in the federation; what every random number of the client hangs on.
    train : GraphSet
        Training graphs.
    held_out : GraphSet
        Validation graphs followed by test graphs.
    num_validation : int
        How many of `held_out` are for validation.
    model : FlatModel
        Workspace, shared by all clients of one shape on this rank.
    shared : SharedPart
        What of `row` is communicated.
    flops : GinFlops
        Counts of the client's model.
    row : float32 [length]
        The client's own parameters.
    """

    id: int
    train: GraphSet
    held_out: GraphSet
    num_validation: int
    model: FlatModel
    shared: SharedPart
    flops: GinFlops
    row: Tensor
    adam: AdamState = field(init=False)
    _train_batch: Batch | None = field(default=None, init=False)
    _held_out_batches: list[Batch] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.adam = AdamState(len(self.row), self.row.device)

    @property
    def weight(self) -> int:
        """The client's weight in averages: its number of training graphs."""
        return self.train.num_graphs

    @property
    def num_test(self) -> int:
        """Number of test graphs."""
        return self.held_out.num_graphs - self.num_validation

    def _epoch_batches(self, case: Case, round: int, epoch: int) -> list[Batch]:
        """Return the epoch's batches; a client whose graphs fit one batch keeps it for the whole run."""
        if self.train.num_graphs <= case.batch_size:
            if self._train_batch is None:
                self._train_batch = Batch.of(self.train, self.row.device)
            return [self._train_batch]
        stream = key(case.seed, Purpose.SHUFFLE, self.id, round, epoch)
        order = permutation(stream, self.train.num_graphs)
        cuts = range(0, len(order), case.batch_size)
        parts = [self.train.take(order[cut : cut + case.batch_size]) for cut in cuts]
        return [Batch.of(part, self.row.device) for part in parts]

    def train_locally(self, case: Case, algorithm: Algorithm, round: int) -> Training:
        """Run the round's local epochs on `row` and return what they did."""
        watch = Stopwatch()
        model, graphs, steps, correct, loss_sum = self.model, 0, 0, 0, 0.0
        counted = executed = 0
        model.parameters.copy_(self.row)
        reference = self.shared.pack(self.row) if algorithm.penalises else None
        if case.optimizer.state == "reset":
            self.adam.reset()
        for epoch in range(case.local_epochs):
            for batch in self._epoch_batches(case, round, epoch):
                streams = DropoutStreams(case.seed, self.id, round, steps)
                scores = self._step(case, algorithm, reference, batch, streams)
                counts = _counts(batch)
                counted += self.flops.training(counts).total
                executed += self.flops.executed(counts, training=True, kernels=case.kernels)
                graphs, steps = graphs + batch.num_graphs, steps + 1
                correct, loss_sum = correct + scores.correct, loss_sum + scores.loss_sum
        norm = two_norm(self.shared.pack(model.gradient))
        self.row.copy_(model.parameters)
        return Training(
            graphs, steps, loss_sum / graphs, correct / graphs, norm, counted, executed, watch.wall, watch.cpu
        )

    def _step(
        self,
        case: Case,
        algorithm: Algorithm,
        reference: Tensor | None,
        batch: Batch,
        streams: DropoutStreams,
    ) -> supervised.Scores:
        """Take one optimizer step; leaves the objective's own gradient in ``model.gradient``."""
        model = self.model
        model.gradient.zero_()
        logits = model.module(batch, streams, case.kernels)
        supervised.loss(logits, batch.labels).backward()  # type: ignore[no-untyped-call]
        gradient = model.gradient
        if reference is not None:
            gradient = gradient.clone()
            penalised = self.shared.pack(gradient)
            algorithm.penalty(self.shared.pack(model.parameters), reference, penalised)
            self.shared.unpack(penalised, gradient)
        adam_step(case.optimizer, self.adam, model.parameters, gradient)
        return supervised.scores(logits.detach(), batch.labels)

    @torch.no_grad()
    def evaluate(self, kernels: str) -> tuple[Evaluation, Evaluation, int, int]:
        """Return validation and test scores of `row`, and the FLOPs counted and executed."""
        self.model.parameters.copy_(self.row)
        if not self._held_out_batches:
            everything = np.arange(self.held_out.num_graphs)
            cuts = range(0, len(everything), _LARGEST_EVALUATION)
            parts = [everything[cut : cut + _LARGEST_EVALUATION] for cut in cuts]
            self._held_out_batches = [Batch.of(self.held_out.take(part), self.row.device) for part in parts]
        logits = torch.cat([self.model.module(batch, None, kernels) for batch in self._held_out_batches])
        labels = torch.cat([batch.labels for batch in self._held_out_batches])
        counts = [_counts(batch) for batch in self._held_out_batches]
        counted = sum(self.flops.forward(count).total for count in counts)
        executed = sum(self.flops.executed(count, training=False, kernels=kernels) for count in counts)
        cut = self.num_validation
        return (
            _evaluation(logits[:cut], labels[:cut]),
            _evaluation(logits[cut:], labels[cut:]),
            counted,
            executed,
        )

    def is_finite(self) -> bool:
        """Return whether parameters and moments hold neither NaN nor infinity."""
        vectors = (self.row, self.adam.mean, self.adam.square)
        return all(bool(torch.isfinite(vector).all()) for vector in vectors)

    def state(self) -> npt.NDArray[np.float32]:
        """Return parameters, both moments and the step count as one float32 vector (steps as two halves)."""
        steps = np.array([self.adam.steps % 2**20, self.adam.steps // 2**20], np.float32)
        vectors = [vector.cpu().numpy() for vector in (self.row, self.adam.mean, self.adam.square)]
        return np.concatenate([*vectors, steps])

    def restore(self, state: npt.NDArray[np.float32]) -> None:
        """Take back what `state` returned."""
        length = len(self.row)
        values = torch.from_numpy(state.copy())
        self.row.copy_(values[:length])
        self.adam.mean.copy_(values[length : 2 * length])
        self.adam.square.copy_(values[2 * length : 3 * length])
        self.adam.steps = int(state[-2]) + int(state[-1]) * 2**20


def two_norm(values: Tensor) -> float:
    """Return the 2-norm in float64, summed pairwise by NumPy: the same for any BLAS and any threads."""
    return float(np.sqrt(np.sum(np.square(values.cpu().numpy().astype(np.float64)))))


def state_size(length: int) -> int:
    """Return the number of floats of a client's state whose parameter vector has `length`."""
    return 3 * length + 2


def _evaluation(logits: Tensor, labels: Tensor) -> Evaluation:
    scores = supervised.scores(logits, labels)
    hits = scores.hits.cpu().numpy().astype(np.uint8)
    return Evaluation(scores.loss_sum / len(labels), int(hits.sum()) / len(labels), hits)


def _counts(batch: Batch) -> GraphCounts:
    topology = batch.topology
    return GraphCounts(topology.num_graphs, topology.num_nodes, topology.num_edges)
