"""What a client keeps: models, optimizer states, vectors of the algorithm; in memory and in checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.memory import Memories
from fedmpi.client.message_layout import MessageLayout
from fedmpi.client.optimizer import AdamState
from fedmpi.kernels.vectors import squared_norm
from fedmpi.models.flat import FlatModel, SharedPart
from fedmpi.programs.hook_checks import Breach


@dataclass
class ClientState:
    """What one client is and keeps from round to round, by client id.

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
    told : dict of str to float32 [*]
        What the server tells all clients, as the client has it; NaN for what it never told.
    messages : MessageLayout
        What the client sends as it is.
    width : int
        Features of a node.
    """

    id: int
    num_train: int
    num_validation: int
    weight: int
    model: FlatModel
    shared: SharedPart
    row: Tensor
    adam: AdamState
    memory: Memories = field(default_factory=Memories.none)
    last: Tensor | None = None
    moments: dict[str, AdamState] = field(default_factory=dict)
    incoming: dict[str, Tensor] = field(default_factory=dict)
    sent: dict[str, Tensor] = field(default_factory=dict)
    chain: dict[str, Tensor] = field(default_factory=dict)
    told: dict[str, Tensor] = field(default_factory=dict)
    messages: MessageLayout = field(default_factory=lambda: MessageLayout({}))
    width: int = 0

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

    def state(self, kept: bool) -> npt.NDArray[np.float32]:
        """Return its model, all moments if these are `kept`, and what it keeps beside, one float32 vector."""
        vectors = [self.row, *([self.adam.state()] if kept else []), *self._others]
        if kept:
            vectors += [adam.state() for adam in self.moments.values()]
        return np.concatenate([vector.cpu().numpy() for vector in vectors])

    @property
    def _others(self) -> list[Tensor]:
        """What it keeps beside model and moments, in the order of its state."""
        last = [] if self.last is None else [self.last]
        told = [each.view(-1) for each in self.told.values()]
        return [*last, *told, *self.incoming.values(), *self.memory.held.values(), *self.chain.values()]

    def restore(self, state: npt.NDArray[np.float32], kept: bool) -> None:
        """Take back what `state` returned."""
        values, taken = torch.from_numpy(state.copy()), 0

        def take(size: int) -> Tensor:
            nonlocal taken
            taken += size
            return values[taken - size : taken]

        self.row.copy_(take(len(self.row)))
        if kept:
            self.adam.restore(take(2 * len(self.adam.mean) + 2))
        for vector in self._others:
            vector.copy_(take(len(vector)))
        for adam in self.moments.values() if kept else ():
            adam.restore(take(2 * len(adam.mean) + 2))


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
