"""A client in one round, as its program sees it: `fedmpi.algorithms.program.Client`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.base import round_half_up
from fedmpi.algorithms.program import Change, Floats, Frozen, Nodes, Term
from fedmpi.case.schema import Case
from fedmpi.client.optimizer import AdamState, descend, descent
from fedmpi.client.passes import Embedded, Pass, Passes, Supervised
from fedmpi.client.program_batch import Batch
from fedmpi.client.program_view import ProgramView
from fedmpi.client.state import ClientState
from fedmpi.client.torch_passes import Loss
from fedmpi.graphs.packed import GraphSet, Int, Topology
from fedmpi.models.dropout import DropoutStreams
from fedmpi.programs.hook_checks import Breach, scalar_like
from fedmpi.programs.hooks import Hooks
from fedmpi.seeds import Purpose, key, permutation

FIRST_SAMPLED = 2**30
"""Number of the first pass of `Trainee.sample`, far from those of the training: it decides the dropout."""


class Trainee(ProgramView):
    """Verbs of a client that trains: see `fedmpi.algorithms.program.Client`.

    Parameters
    ----------
    client : ClientState
        Its workspace holds its parameters, as received.
    case : Case
    algorithm : Hooks
    round : int
        0-based.
    received : float32 [shared], optional
        Of a client that has trained in a group: its row is its model.

    Attributes
    ----------
    done : list of Pass
        What is reported of the training: the model's own passes. All others are `work`.
    """

    def __init__(
        self, client: ClientState, case: Case, algorithm: Hooks, round: int, received: Tensor | None = None
    ) -> None:
        super().__init__(client)
        self._case, self._algorithm = case, algorithm
        self.id, self.round, self.seed, self.samples = client.id, round, case.seed, client.num_train
        self.lr, self.local_epochs = case.optimizer.lr, case.local_epochs
        self.trained, self.trained_shared = client.model.trained, client.shared.trained
        self._model: Tensor = client.model.parameters if received is None else client.row
        self.received = client.shared.pack(client.row) if received is None else received
        self.done: list[Pass] = []
        self.width, self.finite = client.width, True
        self.sent_numbers: dict[str, float] = {}
        self.sent_arrays: dict[str, npt.NDArray[Any]] = {}
        self._epoch = self._step = self._sampled = 0
        self._last: Pass | None = None

    @property
    def steps(self) -> int:
        """Steps that the model has taken."""
        return sum(each.steps for each in self.done)

    @property
    def model(self) -> Tensor:
        """See `program.Client`."""
        return self._model

    @model.setter
    def model(self, value: Tensor) -> None:
        """Refuse another vector: what trains is the one that is there."""
        if value is not self._model:  # it is, after `client.model += ...`
            raise Breach("replaced client.model: change it in place, as client.model.copy_(...) does")

    @property
    def moved(self) -> Tensor:
        """See `program.Client`."""
        return self._client.shared.pack(self.model) - self.received

    @property
    def labels(self) -> Int:
        """See `program.Client`."""
        return self._embedding.train.labels

    @property
    def graphs(self) -> GraphSet:
        """See `program.Client`."""
        return self.of_nodes.graphs

    @cached_property
    def labels_there(self) -> Tensor:
        """Labels of all training graphs."""
        return torch.from_numpy(np.ascontiguousarray(self.labels))

    def shape(self, name: str) -> tuple[int, ...]:
        """See `program.Client`."""
        return self._client.messages.shape(name)

    def send(self, name: str, value: Any) -> None:
        """See `program.Client`."""
        if name in self._algorithm.numbers:
            self.sent_numbers[name] = float(value)
        elif name in self._client.messages.messages:
            array = self._client.messages.checked(name, value)
            self.finite = self.finite and (array.dtype.kind != "f" or bool(np.isfinite(array).all()))
            self.sent_arrays[name] = array
        else:
            self._client.send(name, value)

    def report(self) -> tuple[npt.NDArray[np.uint8], tuple[float, ...], bool]:
        """Return the client's messages as bytes, its numbers, and whether something is not finite."""
        if missing := [name for name in self._algorithm.numbers if name not in self.sent_numbers]:
            raise Breach(f"sent no {missing[0]}: call client.send for it")
        numbers = tuple(self.sent_numbers[name] for name in self._algorithm.numbers)
        return self._client.messages.pack(self.sent_arrays), numbers, not self.finite

    def batches(self, epochs: int | None = None) -> Iterator[Batch]:
        """See `program.Client`."""
        passes = self._client.passes
        for _ in range(self.local_epochs if epochs is None else epochs):
            for numbers in self._numbers():
                yield Batch(self, passes.batch(numbers), numbers, self._streams())
            passes.end_epoch()

    def _numbers(self) -> Iterator[Int | None]:
        """Yield the graphs of each batch of the next epoch."""
        self._epoch += 1
        return self._client.batch_numbers(self._case, self.round, self._epoch - 1)

    def _streams(self) -> DropoutStreams:
        """Return the dropout of the next step."""
        self._step += 1
        return DropoutStreams(self.seed, self.id, self.round, self._step - 1)

    def sample(self, share: float) -> list[Batch]:
        """See `program.Client`."""
        order = permutation(key(self.seed, Purpose.MERGING, self.id, self.round), self.samples)
        chosen = order[: max(1, round_half_up(share * self.samples))]
        cuts, passes = range(0, len(chosen), self._case.batch_size), self._client.passes
        parts = [chosen[cut : cut + self._case.batch_size] for cut in cuts]
        return [Batch(self, passes.batch(numbers), numbers, None) for numbers in parts]

    def public(self) -> Batch:
        """See `program.Client`."""
        if self._client.public is None:
            raise Breach("used public graphs: set reads_outputs, and the case's option `public`")
        return Batch(self, self._client.public, None, None, labelled=False)

    def outputs(self, batch: Batch | None = None, at: Tensor | None = None) -> Tensor:
        """See `program.Client`."""
        with self._at(at):
            if batch is None:
                rows = self._outputs(held_out=False)
            else:
                self.work.append(found := self.by_torch.forward(batch.prepared, head=True))
                rows = found.rows
        self.finite = self.finite and bool(rows.isfinite().all())
        return rows

    def slope(self, batch: Batch, loss: Loss, at: Tensor | None = None) -> Tensor:
        """See `program.Client`."""
        with self._at(at):
            found = self.by_torch.slope(batch.prepared, partial(_scalar, loss))
        self.work.append(found)
        gradient: Tensor = found.rows
        return gradient

    def gradient(
        self,
        batch: Batch,
        at: Tensor | None = None,
        *,
        reported: bool = False,
        loss: Loss | None = None,
        term: Term | None = None,
        beside: Sequence[Batch] = (),
    ) -> Tensor:
        """See `program.Client`."""
        if loss is not None and term is not None:
            raise Breach("took a gradient of a loss and of a term: each takes the place of the task's loss")
        if beside and loss is None:
            raise Breach("took a gradient with batches beside one, which only a loss reads: give it a loss")
        own = loss is None and term is None
        if not batch.labelled and own:
            raise Breach("took a gradient of the public graphs, whose labels no client has: give it a loss")
        if not batch.labelled and reported:
            raise Breach("reported a pass over the public graphs, whose labels no client has")
        gradient = self._client.model.gradient
        reported = reported or (self._is_model(at) and own)
        with self._at(at, keeps_gradient=not reported):
            into = self.done if reported else self.work
            self._pass(batch, into, loss=loss, term=term, beside=beside, alone=True)
            return gradient if reported else gradient.clone()

    def loss(self) -> float:
        """See `program.Client`."""
        if self._last is None:
            raise Breach("asked for the loss before any pass: take a gradient first")
        return self._last.outcome.mean_loss

    def _pass(
        self,
        batch: Batch,
        into: list[Any],
        term: Term | None = None,
        loss: Loss | None = None,
        beside: Sequence[Batch] = (),
        *,
        alone: bool = False,
    ) -> None:
        """Run forward and backward at what the workspace holds; `alone`, a term is the whole loss."""
        streams = batch.streams
        if streams is None:
            streams = DropoutStreams(self.seed, self.id, self.round, FIRST_SAMPLED + self._sampled)
            self._sampled += 1
        if loss is not None:
            others = [each.prepared for each in beside]
            by_loss = partial(_scalar, loss)
            self._last = self.by_torch.step(batch.prepared, streams, loss_of=by_loss, beside=others)
        elif term is None:
            self._last = self._client.passes.step(batch.prepared, streams)
        else:
            checked = partial(_scalar if alone else _scalar_or_none, partial(term, batch))
            self._last = self._embedding.step(batch.prepared, streams, checked, alone=alone)
        into.append(self._last)
        if not batch.labelled:
            self._last = None  # of labels that no client has
        self._algorithm.goes_on()

    def _is_model(self, vector: Tensor | None) -> bool:
        return vector is None or vector is self.model

    @contextmanager
    def _at(self, vector: Tensor | None, *, keeps_gradient: bool = False) -> Iterator[None]:
        """Hold another model vector in the workspace, if it is one; afterwards it has what happened to it."""
        other = None if self._is_model(vector) else vector
        kept = [self._client.model.gradient] if keeps_gradient else []
        if other is not None:
            if not isinstance(other, Tensor) or other.shape != self.model.shape:
                given = f"a vector [{len(other)}]" if isinstance(other, Tensor) else type(other).__name__
                raise Breach(f"used {given} as a model, which is a tensor float32 [{len(self.model)}]")
            kept.append(self.model)
        before = [each.clone() for each in kept]
        if other is not None:
            self.model.copy_(other)
        try:
            yield
        finally:
            if other is not None:
                other.copy_(self.model)
            for each, values in zip(kept, before, strict=True):
                each.copy_(values)

    def run_epochs(
        self,
        vector: Tensor | None = None,
        *,
        epochs: int | None = None,
        moments: str = "model",
        change: Change | None = None,
        frozen: Frozen | None = None,
        term: Term | None = None,
    ) -> None:
        """See `program.Client`."""
        change, passes = change or self._algorithm.change, self._client.passes
        adam, still, own = self._moments(moments), self._frozen(frozen), self._is_model(vector)
        into: list[Any] = self.done if own else self.work
        count = self.local_epochs if epochs is None else epochs
        with self._at(vector, keeps_gradient=not own):
            self._trained_part(self.model, self._client.model.gradient, adam)
            if passes.descends and change is None and still is None and term is None:
                self._run_epoch_by_epoch(passes, count, into, adam)
                return
            take = self._taking(self.model, self._client.model.gradient, adam, change, still)
            for batch in self.batches(count):
                self._pass(batch, into, term)
                take()

    def _run_epoch_by_epoch(self, passes: Passes, epochs: int, into: list[Any], adam: AdamState) -> None:
        """Train with one call for each epoch."""
        for _ in range(epochs):
            batches = [passes.batch(numbers) for numbers in self._numbers()]
            streams = [self._streams() for _ in batches]
            into += passes.descend(batches, streams, self._case.optimizer, adam)
            self._last = into[-1]
            self._algorithm.goes_on()

    def embeddings(self, at: Tensor | None = None) -> Tensor:
        """See `program.Client`."""
        with self._at(at):
            return self._embeddings(held_out=False)

    def training_loss(self, at: Tensor | None = None) -> float:
        """See `program.Client`."""
        with self._at(at):
            found = self._classifying.evaluate_training()
        self.work.append(found)
        return found.outcome.mean_loss

    def validation_loss(self, at: Tensor | None = None) -> float:
        """See `program.Client`."""
        with self._at(at):
            found = self._classifying.evaluate()
        self.work.append(found)
        return found.outcome.part(slice(self._client.num_validation)).mean_loss

    def mean_embedding(self, at: Tensor | None = None) -> Floats:
        """See `program.Client`."""
        with self._at(at):
            return self._noted(self._classifying.embed())

    def nodes(self, at: Tensor | None = None) -> Nodes:
        """See `program.Client`."""
        with self._at(at):
            return self.of_nodes.nodes(self.work)

    def mean_state(
        self, topology: Topology, features: npt.NDArray[np.float32], at: Tensor | None = None
    ) -> Floats:
        """See `program.Client`."""
        with self._at(at):
            return self._noted(self.of_nodes.mean_state(topology, features))

    def _noted(self, found: Embedded) -> Floats:
        self.work.append(found)
        mean: Floats = found.rows
        self.finite = self.finite and bool(np.isfinite(mean.astype(np.float32)).all())
        return mean

    @property
    def _classifying(self) -> Supervised:
        passes = self._client.passes
        if not isinstance(passes, Supervised):
            raise Breach("used a verb of supervised objectives: set needs_labels")
        return passes

    def step(
        self, vector: Tensor, gradient: Tensor, *, moments: str = "model", frozen: Frozen | None = None
    ) -> None:
        """See `program.Client`."""
        change = self._algorithm.change if vector is self.model else None
        self._taking(vector, gradient, self._moments(moments), change, self._frozen(frozen))()

    def _moments(self, name: str) -> AdamState:
        moments = self._client.moments
        if name != "model" and name not in moments:
            raise Breach(f"used moments {name}: moments() declares {', '.join(moments) or 'none'}")
        return self._client.adam if name == "model" else moments[name]

    def _frozen(self, frozen: Frozen | None) -> Tensor | None:
        """Return the parameters that stay as they are, bool [trained]."""
        if frozen is None:
            return None
        model = self._client.model
        found = torch.zeros(model.trained, dtype=torch.bool, device=model.parameters.device)
        for slot in model.slots:
            found[slot.start : slot.stop] = frozen(slot.name)
        return found

    @cached_property
    def _known(self) -> dict[str, Any]:
        """What `change` sees of the client's memory, and of what came with the model."""
        return {**self.memory, **self.incoming}

    def _taking(
        self, vector: Tensor, gradient: Tensor, adam: AdamState, change: Change | None, frozen: Tensor | None
    ) -> Callable[[], None]:
        """Return what takes an optimizer step whenever it is called; the gradient stays as it is."""
        own = self._trained_part(vector, gradient, adam)
        if change is not None or frozen is not None:
            return partial(self._take_changed, vector, gradient, adam, change, frozen)
        return descent(self._case.optimizer, adam, *own)

    def _trained_part(self, vector: Tensor, gradient: Tensor, adam: AdamState) -> tuple[Tensor, Tensor]:
        """Return the trained parts of a vector and its gradient; raise Breach if moments do not fit."""
        trained = len(adam.mean)
        own = vector[:trained], gradient[:trained]
        if any(part.shape != adam.mean.shape for part in own):
            raise Breach(
                f"took a step of a vector [{len(vector)}] by a gradient [{len(gradient)}], with moments "
                f"[{trained}]"
            )
        return own

    def _take_changed(
        self, vector: Tensor, gradient: Tensor, adam: AdamState, change: Change | None, frozen: Tensor | None
    ) -> None:
        """Take a step by what the algorithm makes of the gradient, of the parameters that are not frozen."""
        if change is not None:
            gradient, shared = gradient.clone(), self._client.shared
            part = shared.pack(gradient)
            change(part, shared.pack(vector), self.received, self._known)
            shared.unpack(part, gradient)
        parameters, gradient = vector[: len(adam.mean)], gradient[: len(adam.mean)]
        if frozen is None:
            descend(self._case.optimizer, adam, parameters, gradient)
            return
        before = parameters.clone()
        descend(self._case.optimizer, adam, parameters, gradient.masked_fill(frozen, 0.0))
        parameters.copy_(torch.where(frozen, before, parameters))


def _scalar_or_none(term: Callable[..., Any], rows: Tensor, *others: Tensor) -> Tensor | None:
    """Return a term of rows; raise Breach where it is no scalar."""
    found: Tensor | None = scalar_like(term(rows, *others), rows)
    return found


def _scalar(loss: Callable[..., Any], rows: Tensor, *others: Tensor) -> Tensor:
    """Return a loss of rows; raise Breach where it is none."""
    found = _scalar_or_none(loss, rows, *others)
    if found is None:
        raise Breach("gave a loss that returned None: it must be a scalar")
    return found
