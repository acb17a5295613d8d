"""The clients that a rank hosts: their data, their state, their training and evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.clock import Stopwatch
from fedmpi.engine.client_reports import Classifying, Work, by_prototypes, report_of
from fedmpi.engine.client_state import ClientState, two_norm
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.memory import Memories
from fedmpi.engine.passes import Passes
from fedmpi.engine.trainee import Trainee
from fedmpi.graphs.packed import Int
from fedmpi.models.flat import SharedPart
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
    received: Tensor
    trained: Tensor
    """The shared part of its model before and after, float32 [shared]."""
    finite: bool
    """Whether its parameters and moments are."""
    received_loss: float | None = None
    """Mean loss of the received model on the training graphs, where the algorithm asks for it."""


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
class Client(ClientState):
    """A client and its graphs: local training and evaluation.

    Attributes
    ----------
    passes : Passes or None
        Its training graphs, and its validation graphs followed by its test graphs; None for a member
        of a `ClientGroup`, which holds them.

    judged : callable or None
        Returns the parameters that are evaluated; None: those of its model.
    drawn : int64 [num_train] or None
        Its training graphs of this round among those of `passes`, where its place stands for other clients
        in every round; None: all of them.
    """

    passes: Passes | None = None
    judged: Callable[[BetweenRounds], Tensor] | None = None
    drawn: Int | None = None

    def batch_numbers(self, case: Case, round: int, epoch: int) -> Iterator[Int | None]:
        """Yield the numbers of each batch's training graphs; None for a client whose graphs fit one batch.

        A last batch with fewer graphs than the objective can use is left out.
        """
        if self.num_train <= case.batch_size:
            yield self.drawn
            return
        stream = key(case.seed, Purpose.SHUFFLE, self.id, round, epoch)
        order = permutation(stream, self.num_train)
        for cut in range(0, len(order) - case.objective.smallest_batch + 1, case.batch_size):
            numbers = order[cut : cut + case.batch_size]
            yield numbers if self.drawn is None else self.drawn[numbers]

    @property
    def loaded_passes(self) -> Passes:
        """Its passes; a client that trains alone has them."""
        assert self.passes is not None
        return self.passes

    def train_locally(self, case: Case, algorithm: Hooks, round: int) -> Training:
        """Run the algorithm's program on `row` and return what it did."""
        passes, model, watch = self.loaded_passes, self.model, Stopwatch()
        model.parameters.copy_(self.row)
        for vector in self.sent.values():
            vector.zero_()
        trainee = Trainee(self, case, algorithm, round)
        done, work = trainee.done, trainee.work
        received_loss = self._received_loss(algorithm, work)
        if case.optimizer.state == "reset":
            for adam in (self.adam, *self.moments.values()):
                adam.reset()
        passes.begin_round(self._last_round())
        algorithm.train(trainee)
        passes.end_round()
        norm = two_norm(self.shared.pack(model.gradient))
        self.row.copy_(model.parameters)
        algorithm.after_training(trainee)
        if algorithm.reported is not None:
            model.parameters.copy_(algorithm.reported(self.between_rounds))
        report, lost = report_of(self, case, algorithm, round, work)
        if self.last is not None:
            self.last.copy_(self.row)
        graphs = sum(len(each.outcome.losses) for each in done)
        hits = sum(each.outcome.correct for each in done)
        weight = sum(each.outcome.weight for each in done)
        return Training(
            samples=graphs,
            steps=trainee.steps,
            loss=math.nan if lost else sum(each.outcome.loss_sum for each in done) / weight,
            accuracy=math.nan if done[-1].outcome.scores is not None else hits / graphs,
            gradient_norm=norm,
            model_flops=sum(each.model_flops for each in (*done, *work)),
            executed_flops=sum(each.executed_flops for each in (*done, *work)),
            wall_s=watch.wall,
            cpu_s=watch.cpu,
            report=report,
            received=trainee.received,
            trained=self.shared.pack(self.row),
            finite=self.is_finite(),
            received_loss=received_loss,
        )

    def _received_loss(self, algorithm: Hooks, work: list[Work]) -> float | None:
        """Return the loss of the received model on the training graphs, if the algorithm asks for it."""
        if not algorithm.reports or not algorithm.reports.received_loss:
            return None
        assert isinstance(self.passes, Classifying)  # checked with the suite
        evaluated = self.passes.evaluate_training()
        work.append(evaluated)
        return evaluated.outcome.mean_loss

    def _last_round(self) -> Tensor | None:
        """Return the parameters at the end of the client's last round, if they are kept and there was one."""
        return None if self.last is None or bool(torch.isnan(self.last[0])) else self.last

    @property
    def between_rounds(self) -> BetweenRounds:
        """The client as programs see it when it does not train."""
        return BetweenRounds(self.row, self.memory)

    def evaluate(self) -> Evaluation:
        """Return validation and test outcomes of its model, or the vectors that it gives to all graphs."""
        judged = self.row if self.judged is None else self.judged(self.between_rounds)
        self.model.parameters.copy_(judged)
        found, cut = self.loaded_passes.evaluate(), self.num_validation
        if self.nearest:
            found = by_prototypes(self, found)
        val, test = found.outcome.part(slice(cut)), found.outcome.part(slice(cut, None))
        return Evaluation(val, test, found.model_flops, found.executed_flops, found.vectors)


@dataclass(frozen=True)
class BetweenRounds:
    """See `fedmpi.algorithms.program.Evaluated`."""

    model: Tensor
    memory: Memories

    def part(self, name: str) -> SharedPart:
        """See `program.Evaluated`."""
        return self.memory.layout.parts[name]
