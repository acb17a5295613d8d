"""A client that a rank hosts: its training and evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.passes import Pass, Supervised, Work, total_flops
from fedmpi.client.program_view import BetweenRounds
from fedmpi.client.state import ClientState, two_norm
from fedmpi.client.trainee import Trainee
from fedmpi.clock import Stopwatch
from fedmpi.models.outcome import Evaluation
from fedmpi.programs.hooks import Hooks


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
    """The client's messages, as bytes."""
    sends: Tensor
    """How the shared part of its model changed and the vectors behind it, or where models are averaged the
    shared part itself, float32 [size]."""
    norm: float
    """2-norm of the change of its shared parameters."""
    largest: float
    """Largest magnitude in `sends`."""
    finite: bool
    """Whether its parameters and moments are."""
    numbers: tuple[float, ...] = ()
    """Those that the algorithm has it report."""

    @classmethod
    def of(
        cls, done: Sequence[Pass], work: Sequence[Work] = (), *, lost: bool = False, **others: Any
    ) -> Training:
        """Return what the model's passes and other work add up to, with `others` of the attributes.

        The loss is NaN where something that the client sent is `lost`.
        """
        outcomes = [each.outcome for each in done]
        samples, weight = sum(len(each.losses) for each in outcomes), sum(each.weight for each in outcomes)
        hits = sum(each.correct for each in outcomes)
        model_flops, executed_flops = total_flops([*done, *work])
        return cls(
            samples=samples,
            steps=sum(each.steps for each in done),
            loss=math.nan if lost else sum(each.loss_sum for each in outcomes) / weight,
            accuracy=math.nan if outcomes[-1].scores is not None else hits / samples,
            model_flops=model_flops,
            executed_flops=executed_flops,
            **others,
        )


@dataclass
class Client(ClientState):
    """A client: local training and evaluation.

    Attributes
    ----------
    algorithm : Hooks or None
        Whose programs say what is evaluated, and how.
    """

    algorithm: Hooks | None = None

    def train_locally(self, case: Case, algorithm: Hooks, round: int) -> Training:
        """Run the algorithm's program on `row` and return what it did."""
        passes, model, watch = self.passes, self.model, Stopwatch()
        model.parameters.copy_(self.row)
        for vector in self.sent.values():
            vector.zero_()
        trainee = Trainee(self, case, algorithm, round)
        if case.optimizer.state == "reset":
            for adam in (self.adam, *self.moments.values()):
                adam.reset()
        passes.begin_round(self._last_round())
        algorithm.train(trainee)
        passes.end_round()
        gradient_norm = two_norm(self.shared.part(model.gradient))
        self.row.copy_(model.parameters)
        algorithm.after_training(trainee)
        report, numbers, lost = algorithm.reported(trainee.report)
        after = self.shared.part(self.row)
        change = after - trainee.received
        sends = after.clone() if algorithm.averages_models else self.with_sent(change)
        if self.last is not None:
            self.last.copy_(self.row)
        return Training.of(
            trainee.done,
            trainee.work,
            lost=lost,
            gradient_norm=gradient_norm,
            wall_s=watch.wall,
            cpu_s=watch.cpu,
            report=report,
            sends=sends,
            norm=two_norm(change[: self.shared.trained]),
            largest=max(abs(float(each)) for each in sends.aminmax()),
            finite=self.is_finite(),
            numbers=numbers,
        )

    def _last_round(self) -> Tensor | None:
        """Return the parameters at the end of the client's last round, if they are kept and there was one."""
        return None if self.last is None or bool(torch.isnan(self.last[0])) else self.last

    def evaluated(self, view: BetweenRounds | None = None) -> Tensor:
        """Return the parameters that are evaluated, float32 [length]."""
        judged = self.algorithm.evaluated if self.algorithm else None
        parameters: Tensor = judged(view or BetweenRounds(self)) if judged else self.row
        return parameters

    def evaluate(self) -> Evaluation:
        """Return validation and test outcomes of its model, or the vectors that it gives to all graphs."""
        view = BetweenRounds(self)
        self.model.parameters.copy_(self.evaluated(view))
        found, cut = self._evaluated(view), self.num_validation
        val, test = found.outcome.part(slice(cut)), found.outcome.part(slice(cut, None))
        return Evaluation(val, test, found.model_flops, found.executed_flops, found.vectors)

    def _evaluated(self, view: BetweenRounds) -> Pass:
        """Return the evaluation of the model in the workspace, or of what the algorithm predicts."""
        hooks, predicted = self.algorithm, None
        held_out = len(self.passes.held_out.labels) if isinstance(self.passes, Supervised) else 0
        if hooks is not None and hooks.predict is not None and held_out:
            predicted = hooks.predict(view, held_out)
            if isinstance(predicted, Tensor):
                return hooks.checked("predict", view.of_outputs, predicted)
        found: Pass = self.passes.evaluate()
        return found if predicted is None else view.judged(found, predicted)
