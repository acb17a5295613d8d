"""What a client keeps: models, optimizer states, vectors of the algorithm; in memory and in checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.engine.controls import Controls
from fedmpi.engine.kept import MASK
from fedmpi.engine.optimizer import AdamState
from fedmpi.engine.personal import Personal
from fedmpi.engine.prototypes import PrototypeShape
from fedmpi.kernels.vectors import squared_norm
from fedmpi.models.flat import FlatModel, SharedPart


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
        Parameters at the end of its last round, for objectives and algorithms that need them; NaN before
        the first.
    controls : Controls or None
        For an algorithm that has any.
    personal : Personal or None
        The client's own model, for an algorithm that has one; it is evaluated in place of `row`.
    kept : dict of str to float32 [*]
        What else the algorithm has the client keep: see `fedmpi.engine.kept`.
    merged : SharedPart or None
        What of a received model is merged with the client's own, for an algorithm that does so; `last` is
        then what is evaluated.
    masked : SharedPart or None
        What of its parameters has a mask, for an algorithm with masks.
    least_mask : float
        Elements of the mask below it count as 0 after training.
    width : int
        Features of a node.
    num_statistics : int
        Of what the client tells the server beside its model; 0 for nothing.
    prototypes : PrototypeShape or None
        Of the prototypes that the client sends and gets.
    nearest : bool
        Whether the nearest prototype decides on held-out graphs.
    further : list of AdamState
        Of the second and later phases of its training, where the algorithm has several, then of its mask;
        kept or reset as `adam`.
    """

    id: int
    num_train: int
    num_validation: int
    weight: int
    model: FlatModel
    shared: SharedPart
    row: Tensor
    adam: AdamState
    last: Tensor | None = None
    controls: Controls | None = None
    personal: Personal | None = None
    kept: dict[str, Tensor] = field(default_factory=dict)
    merged: SharedPart | None = None
    masked: SharedPart | None = None
    least_mask: float = 0.0
    width: int = 0
    num_statistics: int = 0
    prototypes: PrototypeShape | None = None
    nearest: bool = False
    further: list[AdamState] = field(default_factory=list)

    def receive(self, model: Tensor) -> None:
        """Take the group's model [shared], and the server's control variate where it follows."""
        self.shared.unpack(model, self.row)
        if self.controls is not None:
            self.controls.server.copy_(model[self.shared.size :])

    def received(self) -> npt.NDArray[np.float32]:
        """Return what `receive` took, as it is between rounds."""
        parts = [self.shared.pack(self.row), *([] if self.controls is None else [self.controls.server])]
        return torch.cat(parts).cpu().numpy()

    @property
    def _models(self) -> list[tuple[Tensor, AdamState]]:
        """Parameters and optimizer state of its model, then of its personal one."""
        personal = [] if self.personal is None else [(self.personal.row, self.personal.adam)]
        return [(self.row, self.adam), *personal]

    def all_parameters(self) -> Tensor:
        """Return the parameters of its model and, behind them, of another that is evaluated, or its mask."""
        rows = [row for row, _ in self._models]
        if self.merged is not None and self.last is not None:
            rows.append(self.last)
        if self.masked is not None:
            rows.append(self.kept[MASK])
        return torch.cat(rows) if len(rows) > 1 else self.row

    def is_finite(self) -> bool:
        """Return whether parameters and moments hold neither NaN nor infinity."""
        vectors = [vector for row, adam in self._models for vector in (row, adam.mean, adam.square)]
        vectors += [vector for adam in self.further for vector in (adam.mean, adam.square)]
        vectors += [] if self.masked is None else [self.kept[MASK]]
        if self.row.device.type == "cpu":
            return all(math.isfinite(two_norm(each)) for each in vectors)
        return bool(torch.stack([torch.isfinite(each).all() for each in vectors]).all())

    def state(self, kept: bool) -> npt.NDArray[np.float32]:
        """Return each model with its optimizer's state if that is `kept`, `last`, control variates, others.

        All one float32 vector.
        """
        vectors: list[Tensor] = []
        for row, adam in self._models:
            vectors += [row, adam.state()] if kept else [row]
        if self.last is not None:
            vectors.append(self.last)
        if self.controls is not None:
            vectors.append(self.controls.state())
        vectors += self.kept.values()
        if kept:
            vectors += [adam.state() for adam in self.further]
        return np.concatenate([vector.cpu().numpy() for vector in vectors])

    def restore(self, state: npt.NDArray[np.float32], kept: bool) -> None:
        """Take back what `state` returned."""
        values, taken = torch.from_numpy(state.copy()), 0

        def take(size: int) -> Tensor:
            nonlocal taken
            taken += size
            return values[taken - size : taken]

        for row, adam in self._models:
            row.copy_(take(len(row)))
            if kept:
                adam.restore(take(2 * len(adam.mean) + 2))
        if self.last is not None:
            self.last.copy_(take(len(self.last)))
        if self.controls is not None:
            self.controls.restore(take(2 * len(self.controls.own)).numpy())
        for vector in self.kept.values():
            vector.copy_(take(len(vector)))
        for adam in self.further if kept else ():
            adam.restore(take(2 * len(adam.mean) + 2))


def two_norm(values: Tensor) -> float:
    """Return the 2-norm, summed in float64 in a fixed order; not finite if an element is not."""
    return math.sqrt(squared_norm(values.cpu().numpy()))


def state_size(length: int, trained: int, *, kept: bool, last: bool, rest: int, models: int = 1) -> int:
    """Return the floats of a client's state; see `Client.state`.

    Parameters
    ----------
    length, trained : int
        Of its model's vector, and of what the optimizer moves of it.
    kept, last : bool
        Whether the optimizer's state and the model of the last round are in it.
    rest : int
        Floats of its control variates and of what else the algorithm has it keep.
    models : int
        2 with a personal model.
    """
    return models * (length + (2 * trained + 2 if kept else 0)) + (length if last else 0) + rest
