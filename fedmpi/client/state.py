"""A client's graphs, and what it keeps: models, optimizer states, vectors of the algorithm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.best import BestModel
from fedmpi.client.layouts import Memories, MemoryLayout, MessageLayout
from fedmpi.client.optimizer import AdamState
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import Int
from fedmpi.kernels.vectors import squared_norm
from fedmpi.models.flat import FlatModel, SharedPart
from fedmpi.programs.hook_checks import Breach
from fedmpi.seeds import Purpose, key, permutation


@dataclass
class ClientState:
    """What one client has and keeps from round to round.

    Attributes
    ----------
    id : int
        Place in the federation; the client's random numbers depend on it.
    num_train : int
        Training graphs.
    num_validation : int
        Validation examples.
    weight : int
        The client's weight in averages: its number of training examples.
    model : FlatModel
        Workspace, shared by all clients of one shape on this rank.
    shared : SharedPart
        What of `row` is communicated.
    row : float32 [length]
        The client's own parameters.
    adam : AdamState
        Its own where it is kept from round to round; else one that all clients of a shape reset and use.
    last : float32 [length] or None
        Parameters at the end of its last round, for objectives that need them; NaN before the first.
    memory : Memories
        What its algorithm has it keep.
    moments : dict of str to AdamState
        Further moments of its algorithm; kept or reset as `adam`.
    incoming, sent : dict of str to float32 [shared]
        The vectors that travel behind the model, as received, and behind the update.
    chain : dict of str to float32 [shared parameters]
        What the exchange's chain has it keep.
    start : float32 [size] or None
        What it got when it began, where the server's model may have moved on since.
    best : BestModel or None
        Model of its best round by validation, where the case keeps it.
    told : dict of str to float32 [*]
        What the server tells all clients, as the client has it; NaN for what it never told.
    messages : MessageLayout
        What the client sends as it is.
    width : int
        Features of a node.
    passes : Passes
        Its training graphs, and its validation graphs followed by its test graphs; None for a member
        of a `ClientGroup`, which holds them.
    drawn : int64 [num_train] or None
        Its training graphs of this round among those of `passes`, where its place stands for other clients
        in every round; None: all of them.
    most_batches : int or None
        Of an epoch; None: all.
    public : Batch or None
        The graphs that all clients have.
    """

    id: int
    num_train: int
    num_validation: int
    weight: int
    model: FlatModel
    shared: SharedPart
    row: Tensor
    adam: AdamState
    memory: Memories = field(default_factory=lambda: Memories(MemoryLayout({}, {}, {}, {}), {}))
    last: Tensor | None = None
    moments: dict[str, AdamState] = field(default_factory=dict)
    incoming: dict[str, Tensor] = field(default_factory=dict)
    sent: dict[str, Tensor] = field(default_factory=dict)
    chain: dict[str, Tensor] = field(default_factory=dict)
    start: Tensor | None = None
    best: BestModel | None = None
    told: dict[str, Tensor] = field(default_factory=dict)
    messages: MessageLayout = field(default_factory=lambda: MessageLayout({}))
    width: int = 0
    passes: Any = None
    drawn: Int | None = None
    most_batches: int | None = None
    public: Batch | None = None

    def batch_numbers(self, case: Case, round: int, epoch: int) -> Iterator[Int | None]:
        """Yield the numbers of each batch's training graphs; None for a client whose graphs fit one batch.

        A last batch with fewer graphs than the objective can use is left out.
        """
        if self.num_train <= case.batch_size:
            yield self.drawn
            return
        stream = key(case.seed, Purpose.SHUFFLE, self.id, round, epoch)
        order = permutation(stream, self.num_train)
        cuts = range(0, len(order) - case.objective.smallest_batch + 1, case.batch_size)
        for cut in cuts[: self.most_batches]:
            numbers = order[cut : cut + case.batch_size]
            yield numbers if self.drawn is None else self.drawn[numbers]

    def receive(self, model: Tensor) -> None:
        """Take the group's model [shared], and the vectors that follow it."""
        self.shared.unpack(model, self.row)
        for place, vector in enumerate(self.incoming.values(), 1):
            vector.copy_(model[place * self.shared.size : (place + 1) * self.shared.size])

    @property
    def known(self) -> dict[str, Tensor | None]:
        """What came from the server: vectors behind the model, and what it tells; None before that."""
        told = {name: None if bool(torch.isnan(each).all()) else each for name, each in self.told.items()}
        return {**self.incoming, **told}

    def send(self, name: str, vector: Tensor) -> None:
        """Have a vector travel behind this round's update."""
        if name not in self.sent:
            raise Breach(f"sent {name}: `sends` declares {', '.join(self.sent) or 'nothing'}")
        if vector.shape != self.sent[name].shape:
            raise Breach(f"sent {name} as {list(vector.shape)}: it is [{self.shared.size}]")
        self.sent[name].copy_(vector)

    def with_sent(self, change: Tensor) -> Tensor:
        """Return an update [shared] with the vectors that travel behind it."""
        behind = [each.to(change.device) for each in self.sent.values()]
        return torch.cat([change, *behind]) if behind else change

    def received(self) -> npt.NDArray[np.float32]:
        """Return what `receive` took, as it is between rounds."""
        return torch.cat([self.shared.pack(self.row), *self.incoming.values()]).cpu().numpy()

    def all_parameters(self) -> Tensor:
        """Return the parameters of its model and, behind them, what else is evaluated."""
        judged = self.memory.judged
        return torch.cat([self.row, *judged]) if judged else self.row

    def is_finite(self) -> bool:
        """Return whether parameters and moments hold neither NaN nor infinity."""
        moments = (self.adam, *self.moments.values())
        vectors = [self.row, *(vector for adam in moments for vector in (adam.mean, adam.square))]
        vectors += self.memory.judged
        if self.row.device.type == "cpu":
            return all(math.isfinite(two_norm(each)) for each in vectors)
        return bool(torch.stack([torch.isfinite(each).all() for each in vectors]).all())

    def _parts(self, kept: bool) -> list[Tensor | AdamState | BestModel]:
        """Return what makes up its state, in order; moments only if these are `kept`."""
        told = [each.view(-1) for each in self.told.values()]
        vectors = [*told, *self.incoming.values(), *self.memory.held.values(), *self.chain.values()]
        parts = [self.last, *vectors, self.start, self.best]
        beside = [each for each in parts if each is not None]
        return [self.row, self.adam, *beside, *self.moments.values()] if kept else [self.row, *beside]

    def state(self, kept: bool) -> npt.NDArray[np.float32]:
        """Return its model, all moments if these are `kept`, and what it keeps beside, one float32 vector."""
        parts = [each if isinstance(each, Tensor) else each.state() for each in self._parts(kept)]
        return np.concatenate([part.cpu().numpy() for part in parts])

    def restore(self, state: npt.NDArray[np.float32], kept: bool) -> None:
        """Take back what `state` returned."""
        values = torch.from_numpy(state.copy())
        for each in self._parts(kept):
            part, values = values[: len(each)], values[len(each) :]
            if isinstance(each, Tensor):
                each.copy_(part)
            else:
                each.restore(part)

    def layout(self, kept: bool) -> StateLayout:
        """Return the layout of its state."""
        parts = self._parts(kept)
        ends = list(accumulate(map(len, parts)))
        steps = [end - 2 for end, part in zip(ends, parts, strict=True) if isinstance(part, AdamState)]
        return StateLayout(ends[-1], len(self.row), tuple(steps))


@dataclass(frozen=True)
class StateLayout:
    """Layout of one client's state.

    Attributes
    ----------
    size, parameters : int
        Floats of the state, and of the parameters, with which it begins.
    steps : tuple of int
        Where the two floats of each step count begin; none if moments are not kept.
    """

    size: int
    parameters: int
    steps: tuple[int, ...] = ()


def two_norm(values: Tensor) -> float:
    """Return the 2-norm, summed in float64 in a fixed order; not finite if an element is not."""
    return math.sqrt(squared_norm(values.cpu().numpy()))
