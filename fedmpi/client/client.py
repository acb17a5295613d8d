"""A client that a rank hosts: its training and evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.data import ClientData
from fedmpi.client.passes import Embedded, Pass
from fedmpi.client.state import two_norm
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.client.trainee import Trainee
from fedmpi.clock import Stopwatch
from fedmpi.models.flat import SharedPart
from fedmpi.models.outcome import Evaluation
from fedmpi.programs.hook_checks import Breach
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
    received: Tensor
    trained: Tensor
    """The shared part of its model before and after, float32 [shared]."""
    finite: bool
    """Whether its parameters and moments are."""
    numbers: tuple[float, ...] = ()
    """Those that the algorithm has it report."""


@dataclass
class Client(ClientData):
    """A client: local training and evaluation.

    Attributes
    ----------
    algorithm : Hooks or None
        Whose programs say what is evaluated, and how.
    """

    algorithm: Hooks | None = None

    def train_locally(self, case: Case, algorithm: Hooks, round: int) -> Training:
        """Run the algorithm's program on `row` and return what it did."""
        passes, model, watch = self.loaded_passes, self.model, Stopwatch()
        model.parameters.copy_(self.row)
        for vector in self.sent.values():
            vector.zero_()
        trainee = Trainee(self, case, algorithm, round)
        done, work = trainee.done, trainee.work
        if case.optimizer.state == "reset":
            for adam in (self.adam, *self.moments.values()):
                adam.reset()
        passes.begin_round(self._last_round())
        algorithm.train(trainee)
        passes.end_round()
        norm = two_norm(self.shared.pack(model.gradient))
        self.row.copy_(model.parameters)
        algorithm.after_training(trainee)
        report, numbers, lost = algorithm.reported(trainee.report)
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
            numbers=numbers,
        )

    def _last_round(self) -> Tensor | None:
        """Return the parameters at the end of the client's last round, if they are kept and there was one."""
        return None if self.last is None or bool(torch.isnan(self.last[0])) else self.last

    def evaluate(self) -> Evaluation:
        """Return validation and test outcomes of its model, or the vectors that it gives to all graphs."""
        seen = BetweenRounds(self)
        judged, predict = (
            (None, None) if self.algorithm is None else (self.algorithm.evaluated, self.algorithm.predict)
        )
        self.model.parameters.copy_(self.row if judged is None else judged(seen))
        found, cut = self.loaded_passes.evaluate(), self.num_validation
        if predict is not None and len(found.outcome.losses):
            classes = predict(seen, len(found.outcome.losses))
            if classes is not None:
                found = seen.judged(found, classes)
        val, test = found.outcome.part(slice(cut)), found.outcome.part(slice(cut, None))
        return Evaluation(val, test, found.model_flops, found.executed_flops, found.vectors)


class BetweenRounds:
    """A client as programs see it when it does not train: `fedmpi.algorithms.program.Evaluated`."""

    def __init__(self, client: Client) -> None:
        self._client, self._work = client, list[Embedded]()
        self.model, self.memory = client.row, client.memory

    def __getattr__(self, name: str) -> Any:
        """Refuse what only a client that trains has."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise Breach(
            f"used client.{name}: between rounds it has model, memory, incoming, part and embeddings"
        )

    @property
    def incoming(self) -> dict[str, Tensor | None]:
        """See `program.Evaluated`."""
        return self._client.known

    def part(self, name: str) -> SharedPart:
        """See `program.Evaluated`."""
        return self.memory.layout.parts[name]

    def embeddings(self) -> Tensor:
        """See `program.Evaluated`."""
        passes = self._client.loaded_passes
        if not isinstance(passes, CompiledPasses | TorchPasses):
            raise Breach("used embeddings, which these kernels do not give: set reads_embeddings")
        rows = []
        for part in passes.embedded_held_out():
            self._work.append(part)
            rows.append(torch.as_tensor(part.rows).clone())
        return torch.cat(rows)

    def judged(self, found: Pass, classes: npt.NDArray[np.int64]) -> Pass:
        """Return an evaluation whose hits are those of predicted classes; losses are the head's."""
        passes = self._client.loaded_passes
        assert isinstance(passes, CompiledPasses | TorchPasses)  # it predicted by embeddings
        hits = (classes == passes.held_out_labels).astype(np.uint8)
        return replace(
            found,
            outcome=replace(found.outcome, hits=hits),
            model_flops=found.model_flops + sum(each.model_flops for each in self._work),
            executed_flops=found.executed_flops + sum(each.executed_flops for each in self._work),
        )
