"""The clients that a rank hosts: their data, their state, their training and evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.base import Algorithm, Trained
from fedmpi.case.schema import Case
from fedmpi.clock import Stopwatch
from fedmpi.engine.controls import Controls
from fedmpi.engine.molecules import MoleculePasses
from fedmpi.engine.optimizer import AdamState, descend
from fedmpi.engine.passes import CompiledPasses, Embedding, Pass, Passes, TorchPasses
from fedmpi.graphs.packed import Int
from fedmpi.kernels.vectors import squared_norm
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel, SharedPart
from fedmpi.models.outcome import Outcome
from fedmpi.seeds import Purpose, key, permutation


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
    report: npt.NDArray[np.uint8]
    """What the algorithm has the client report, [report_size]."""


@dataclass(frozen=True)
class Evaluation:
    """Outcomes on both held-out splits, and the FLOPs counted and executed.

    `vectors` are those of an unsupervised objective, float32 [graphs, d]: of training, validation and
    test graphs; its outcomes are empty.
    """

    val: Outcome
    test: Outcome
    model_flops: int
    executed_flops: int
    vectors: npt.NDArray[np.float32] | None = None


@dataclass
class Client:
    """One client: its data, its parameters and optimizer state, all by client id.

    Attributes
    ----------
    id : int
        Place in the federation; what every random number of the client hangs on.
    num_train, num_validation, num_test : int
        Graphs of its splits.
    passes : Passes or None
        Its training graphs, and its validation graphs followed by its test graphs; None for a member
        of a `ClientGroup`, which holds them.
    model : FlatModel
        Workspace, shared by all clients of one shape on this rank.
    shared : SharedPart
        What of `row` is communicated.
    row : float32 [length]
        The client's own parameters.
    adam : AdamState
        Its own where it is kept from round to round; else one that all clients of a shape reset and use.
    last : float32 [length] or None
        Parameters at the end of its last round, for objectives that keep them; NaN before the first.
    controls : Controls or None
        For an algorithm that has any.
    """

    id: int
    num_train: int
    num_validation: int
    num_test: int
    passes: Passes | None
    model: FlatModel
    shared: SharedPart
    row: Tensor
    adam: AdamState
    last: Tensor | None = None
    controls: Controls | None = None

    @property
    def weight(self) -> int:
        """The client's weight in averages: its number of training graphs."""
        return self.num_train

    def batch_numbers(self, case: Case, round: int, epoch: int) -> Iterator[Int | None]:
        """Yield the numbers of each batch's training graphs; None for a client whose graphs fit one batch.

        A last batch with fewer graphs than the objective can use is left out.
        """
        if self.num_train <= case.batch_size:
            yield None
            return
        stream = key(case.seed, Purpose.SHUFFLE, self.id, round, epoch)
        order = permutation(stream, self.num_train)
        for cut in range(0, len(order) - case.objective.smallest_batch + 1, case.batch_size):
            yield order[cut : cut + case.batch_size]

    def train_locally(self, case: Case, algorithm: Algorithm, round: int) -> Training:
        """Run the round's local epochs on `row` and return what they did."""
        assert self.passes is not None
        watch = Stopwatch()
        model = self.model
        done: list[Pass] = []
        model.parameters.copy_(self.row)
        received = self.shared.pack(self.row) if algorithm.penalises or self.controls else None
        if case.optimizer.state == "reset":
            self.adam.reset()
        self.passes.begin_round(self._last_round())
        for epoch in range(case.local_epochs):
            self._train_epoch(case, algorithm, round, epoch, received, done)
            self.passes.end_epoch()
        self.passes.end_round()
        steps = sum(each.steps for each in done)
        norm = two_norm(self.shared.pack(model.gradient))
        self.row.copy_(model.parameters)
        report, work = self._report(case, algorithm, round)
        if self.last is not None:
            self.last.copy_(model.parameters)
        if self.controls is not None and received is not None:
            moved = self.shared.pack(self.row) - received
            self.controls.renew(algorithm, moved, steps, case.optimizer.lr)
        graphs = sum(len(each.outcome.losses) for each in done)
        hits = sum(each.outcome.correct for each in done)
        weight = sum(each.outcome.weight for each in done)
        lost = any(not np.isfinite(each.mean.astype(np.float32)).all() for each in work)
        return Training(
            samples=graphs,
            steps=steps,
            loss=math.nan if lost else sum(each.outcome.loss_sum for each in done) / weight,
            accuracy=math.nan if done[-1].outcome.scores is not None else hits / graphs,
            gradient_norm=norm,
            model_flops=sum(each.model_flops for each in done) + sum(each.model_flops for each in work),
            executed_flops=sum(each.executed_flops for each in done)
            + sum(each.executed_flops for each in work),
            wall_s=watch.wall,
            cpu_s=watch.cpu,
            report=report,
        )

    def _train_epoch(
        self,
        case: Case,
        algorithm: Algorithm,
        round: int,
        epoch: int,
        received: Tensor | None,
        done: list[Pass],
    ) -> None:
        """Take an epoch's steps, in one call where the kernels can and nothing changes their gradients."""
        assert self.passes is not None
        chosen = self.batch_numbers(case, round, epoch)
        step = sum(each.steps for each in done)
        if isinstance(self.passes, MoleculePasses) and received is None:
            batches = [self.passes.batch(numbers) for numbers in chosen]
            steps = range(step, step + len(batches))
            streams = [DropoutStreams(case.seed, self.id, round, each) for each in steps]
            done.append(self.passes.epoch(batches, streams, case.optimizer, self.adam))
            return
        for number, numbers in enumerate(chosen, step):
            streams_of_step = DropoutStreams(case.seed, self.id, round, number)
            done.append(self.passes.step(self.passes.batch(numbers), streams_of_step))
            self._descend(case, algorithm, received)

    def _last_round(self) -> Tensor | None:
        """Return the parameters at the end of the client's last round, if they are kept and there was one."""
        return None if self.last is None or bool(torch.isnan(self.last[0])) else self.last

    def _report(
        self, case: Case, algorithm: Algorithm, round: int
    ) -> tuple[npt.NDArray[np.uint8], list[Embedding]]:
        """Return the client's report after its training, and the embeddings that it took."""
        work: list[Embedding] = []
        if not algorithm.report_size(case.model):
            return np.zeros(0, np.uint8), work

        def mean_embedding() -> npt.NDArray[np.float64]:
            assert isinstance(
                self.passes, CompiledPasses | MoleculePasses | TorchPasses
            )  # checked with the suite
            work.append(self.passes.embed())
            return work[-1].mean

        return algorithm.report(Trained(case.seed, self.id, round, mean_embedding)), work

    def _descend(self, case: Case, algorithm: Algorithm, received: Tensor | None) -> None:
        """Take one optimizer step; the objective's own gradient stays in ``model.gradient``."""
        gradient = self.model.gradient
        if received is not None:
            gradient = gradient.clone()
            changed = self.shared.pack(gradient)
            if algorithm.penalises:
                algorithm.penalty(self.shared.pack(self.model.parameters), received, changed)
            if self.controls is not None:
                self.controls.correct(algorithm, changed)
            self.shared.unpack(changed, gradient)
        trained = slice(self.model.trained)
        descend(case.optimizer, self.adam, self.model.parameters[trained], gradient[trained])

    def evaluate(self) -> Evaluation:
        """Return validation and test outcomes of `row`, or the vectors that it gives to all graphs."""
        assert self.passes is not None
        self.model.parameters.copy_(self.row)
        found, cut = self.passes.evaluate(), self.num_validation
        val, test = found.outcome.part(slice(cut)), found.outcome.part(slice(cut, None))
        return Evaluation(val, test, found.model_flops, found.executed_flops, found.vectors)

    def receive(self, model: Tensor) -> None:
        """Take the group's model [shared], and the server's control variate where it follows."""
        self.shared.unpack(model, self.row)
        if self.controls is not None:
            self.controls.server.copy_(model[self.shared.size :])

    def received(self) -> npt.NDArray[np.float32]:
        """Return what `receive` took, as it is between rounds."""
        parts = [self.shared.pack(self.row), *([] if self.controls is None else [self.controls.server])]
        return torch.cat(parts).cpu().numpy()

    def is_finite(self) -> bool:
        """Return whether parameters and moments hold neither NaN nor infinity."""
        vectors = (self.row, self.adam.mean, self.adam.square)
        if self.row.device.type == "cpu":
            return all(math.isfinite(two_norm(each)) for each in vectors)
        return bool(torch.stack([torch.isfinite(each).all() for each in vectors]).all())

    def state(self, kept: bool) -> npt.NDArray[np.float32]:
        """Return the parameters, moments and steps if they are `kept`, `last`, and control variates.

        All one float32 vector, the steps as two halves.
        """
        vectors = [self.row]
        if kept:
            steps = torch.tensor([self.adam.steps % 2**20, self.adam.steps // 2**20], dtype=torch.float32)
            vectors += [self.adam.mean, self.adam.square, steps]
        if self.last is not None:
            vectors.append(self.last)
        if self.controls is not None:
            vectors.append(self.controls.state())
        return np.concatenate([vector.cpu().numpy() for vector in vectors])

    def restore(self, state: npt.NDArray[np.float32]) -> None:
        """Take back what `state` returned."""
        length, trained = len(self.row), len(self.adam.mean)
        if self.controls is not None:
            cut = len(state) - 2 * len(self.controls.own)
            self.controls.restore(state[cut:])
            state = state[:cut]
        values = torch.from_numpy(state.copy())
        self.row.copy_(values[:length])
        rest = values[length:]
        if self.last is not None:
            self.last.copy_(rest[-length:])
            rest = rest[:-length]
        if len(rest):
            self.adam.mean.copy_(rest[:trained])
            self.adam.square.copy_(rest[trained : 2 * trained])
            self.adam.steps = int(rest[-2]) + int(rest[-1]) * 2**20


def two_norm(values: Tensor) -> float:
    """Return the 2-norm, summed in float64 in a fixed order; not finite if an element is not."""
    return math.sqrt(squared_norm(values.cpu().numpy()))


def state_size(length: int, trained: int, *, kept: bool, last: bool, controls: int) -> int:
    """Return the floats of a client's state; its vector has `length`, `trained` of it; see `Client.state`."""
    return length + (2 * trained + 2 if kept else 0) + (length if last else 0) + controls
