"""The clients that a rank hosts: their data, their state, their training and evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.clock import Stopwatch
from fedmpi.engine.capability_hooks import PersonalModel
from fedmpi.engine.client_reports import Classifying, Work, by_prototypes, report_of
from fedmpi.engine.client_state import ClientState, two_norm
from fedmpi.engine.embedding_terms import EmbeddingTerms
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.kept import MASK, SHARE, VECTOR
from fedmpi.engine.masking import Masking, product
from fedmpi.engine.merging import merge
from fedmpi.engine.mixing import Mixing, mixture
from fedmpi.engine.molecules import MoleculePasses
from fedmpi.engine.passes import Pass, Passes
from fedmpi.engine.step_rules import Change, StepRule, frozen_in
from fedmpi.graphs.packed import Int
from fedmpi.models.dropout import DropoutStreams
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

    drawn : int64 [num_train] or None
        Its training graphs of this round among those of `passes`, where its place stands for other clients
        in every round; None: all of them.
    """

    passes: Passes | None = None
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

    def train_locally(self, case: Case, algorithm: Hooks, round: int) -> Training:
        """Run the round's local epochs on `row` and return what they did."""
        assert self.passes is not None
        watch = Stopwatch()
        model = self.model
        model.parameters.copy_(self.row)
        received = self.shared.pack(self.row)
        work: list[Work] = []
        received_loss = self._received_loss(algorithm, work)
        if case.optimizer.state == "reset":
            for adam in (self.adam, *self.further):
                adam.reset()
        last = self._last_round()
        if algorithm.merging and last is not None:
            work += merge(self, algorithm.merging, case, round, last)
        self.passes.begin_round(last)
        mixing = self._mixing(case, algorithm)
        terms = EmbeddingTerms(algorithm.embeddings, self, last) if algorithm.embeddings else None
        masking, change = self._masking(case, algorithm), self._change(algorithm, received)
        rule = StepRule(self.adam, change, mixing=mixing, terms=terms, masking=masking)
        done = self._train_phases(case, algorithm, round, rule)
        work += [*(mixing.work if mixing else []), *(terms.work if terms else [])]
        self.passes.end_round()
        steps = sum(each.steps for each in done)
        norm = two_norm(self.shared.pack(model.gradient))
        self.row.copy_(model.parameters)
        if self.masked is not None:
            model.parameters.copy_(self._with_mask())
        report, lost = report_of(self, case, algorithm, round, work)
        if self.last is not None:
            self.last.copy_(model.parameters)
        self._renew_vectors(case, algorithm, received, steps)
        if self.personal is not None and algorithm.personal:
            work += self._train_personal(case, algorithm.personal, round, received, steps)
        graphs = sum(len(each.outcome.losses) for each in done)
        hits = sum(each.outcome.correct for each in done)
        weight = sum(each.outcome.weight for each in done)
        return Training(
            samples=graphs,
            steps=steps,
            loss=math.nan if lost else sum(each.outcome.loss_sum for each in done) / weight,
            accuracy=math.nan if done[-1].outcome.scores is not None else hits / graphs,
            gradient_norm=norm,
            model_flops=sum(each.model_flops for each in (*done, *work)),
            executed_flops=sum(each.executed_flops for each in (*done, *work)),
            wall_s=watch.wall,
            cpu_s=watch.cpu,
            report=report,
            received=received,
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

    def _change(self, algorithm: Hooks, received: Tensor) -> Change | None:
        """Return what the algorithm does to the gradient in each step, if anything."""
        penalty, own, controls = algorithm.penalty, self.controls, algorithm.controls
        vector, trained = algorithm.vector, slice(self.shared.trained)
        if penalty is None and own is None and vector is None:
            return None

        def change(gradient: Tensor) -> None:
            if penalty:
                penalty.penalty(self.shared.pack(self.model.parameters), received, gradient)
            if own is not None and controls:
                own.correct(controls, gradient)
            if vector:
                gradient[trained] += vector.linear_term(self.kept[VECTOR])

        return change

    def _mixing(self, case: Case, algorithm: Hooks) -> Mixing | None:
        """Return what trains a second model beside the received one, if the algorithm mixes the two."""
        if not algorithm.mixed:
            return None
        assert self.passes is not None and self.personal is not None
        if case.optimizer.state == "reset":
            self.personal.adam.reset()
        share = self.kept[SHARE]
        return Mixing(algorithm.mixed, case.optimizer, self.passes, self.model, self.personal, share)

    def _masking(self, case: Case, algorithm: Hooks) -> Masking | None:
        """Return what trains a mask beside the parameters, if the algorithm has masks."""
        if not algorithm.masked or self.masked is None:
            return None
        mask, adam = self.kept[MASK], self.further[-1]
        return Masking(algorithm.masked, case.optimizer, self.model, self.masked, mask, adam)

    def _train_phases(self, case: Case, algorithm: Hooks, round: int, rule: StepRule) -> list[Pass]:
        """Train the received model: in one phase, unless the algorithm has several."""
        if not algorithm.phases:
            return self._train(case, round, range(case.local_epochs), 0, rule)
        done: list[Pass] = []
        adams, first = (self.adam, *self.further), 0
        for number, epochs in enumerate(algorithm.phases.phases(case.local_epochs)):
            frozen, step = frozen_in(algorithm.phases, self.model, number), sum(each.steps for each in done)
            own = replace(rule, adam=adams[number], frozen=frozen)
            done += self._train(case, round, range(first, first + epochs), step, own)
            first += epochs
        return done

    def _renew_vectors(self, case: Case, algorithm: Hooks, received: Tensor, steps: int) -> None:
        """Replace the client's control variate, or its vector, after training."""
        if not algorithm.controls and not algorithm.vector:
            return
        moved, lr = self.shared.pack(self.row) - received, case.optimizer.lr
        if self.controls is not None and algorithm.controls:
            self.controls.renew(algorithm.controls, moved, steps, lr)
        if algorithm.vector:
            own = self.kept[VECTOR]
            own.copy_(algorithm.vector.next_vector(own, moved[: self.shared.trained], steps, lr))

    def _train_personal(
        self, case: Case, hooks: PersonalModel, round: int, received: Tensor, step: int
    ) -> list[Pass]:
        """Train the personal model for as many epochs, with steps numbered from `step`."""
        assert self.personal is not None

        def change(gradient: Tensor) -> None:
            hooks.personal_penalty(self.shared.pack(self.model.parameters), received, gradient)

        self.model.parameters.copy_(self.personal.row)
        if case.optimizer.state == "reset":
            self.personal.adam.reset()
        epochs = range(case.local_epochs, 2 * case.local_epochs)
        done = self._train(case, round, epochs, step, StepRule(self.personal.adam, change))
        self.personal.row.copy_(self.model.parameters)
        return done

    def _train(self, case: Case, round: int, epochs: range, step: int, rule: StepRule) -> list[Pass]:
        """Train the model's parameters.

        Parameters
        ----------
        case : Case
        round : int
        epochs : range
            Numbers of the epochs in the round, which decide the order of the batches.
        step : int
            Number of the first step in the round, which decides its dropout.
        rule : StepRule
        """
        assert self.passes is not None
        done: list[Pass] = []
        for epoch in epochs:
            first = step + sum(each.steps for each in done)
            done += self._train_epoch(case, round, epoch, first, rule)
            self.passes.end_epoch()
        return done

    def _train_epoch(self, case: Case, round: int, epoch: int, step: int, rule: StepRule) -> list[Pass]:
        """Take an epoch's steps, in one call where the kernels can and nothing changes their gradients."""
        assert self.passes is not None
        chosen = self.batch_numbers(case, round, epoch)
        if isinstance(self.passes, MoleculePasses) and rule.is_plain:
            batches = [self.passes.batch(numbers) for numbers in chosen]
            steps = range(step, step + len(batches))
            streams = [DropoutStreams(case.seed, self.id, round, each) for each in steps]
            return [self.passes.epoch(batches, streams, case.optimizer, rule.adam)]
        done = []
        for number, numbers in enumerate(chosen, step):
            streams_of_step = DropoutStreams(case.seed, self.id, round, number)
            batch = self.passes.batch(numbers)
            if rule.mixing:
                rule.mixing.begin_step()
            if rule.masking:
                rule.masking.begin_step()
            if rule.terms:
                done.append(rule.terms.step(numbers, batch, streams_of_step))
            else:
                done.append(self.passes.step(batch, streams_of_step))
            if rule.masking:
                rule.masking.end_pass()
            rule.take(case.optimizer, self.model, self.shared)
            if rule.mixing:
                rule.mixing.end_step(batch, streams_of_step)
        return done

    def _last_round(self) -> Tensor | None:
        """Return the parameters at the end of the client's last round, if they are kept and there was one."""
        return None if self.last is None or bool(torch.isnan(self.last[0])) else self.last

    def _with_mask(self) -> Tensor:
        """Return the parameters, times the mask where the client has one."""
        if self.masked is None:
            return self.row
        return product(self.row, self.masked, self.kept[MASK], self.least_mask)

    def _evaluated(self) -> Tensor:
        """Return the parameters that are evaluated: of its model, or of the one that is its own."""
        if self.merged is not None and (last := self._last_round()) is not None:
            return last
        if self.personal is None:
            return self._with_mask()
        if SHARE in self.kept:
            return mixture(self.row, self.personal.row, self.kept[SHARE])
        return self.personal.row

    def evaluate(self) -> Evaluation:
        """Return validation and test outcomes of its model, or the vectors that it gives to all graphs."""
        assert self.passes is not None
        self.model.parameters.copy_(self._evaluated())
        found, cut = self.passes.evaluate(), self.num_validation
        if self.nearest:
            found = by_prototypes(self, found)
        val, test = found.outcome.part(slice(cut)), found.outcome.part(slice(cut, None))
        return Evaluation(val, test, found.model_flops, found.executed_flops, found.vectors)
