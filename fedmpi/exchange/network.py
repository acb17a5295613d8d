"""The clients' network as the server runs it: `fedmpi.algorithms.program.Network`."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import Topology
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import Shape
from fedmpi.objectives.unsupervised import network_of


class ServerNetwork:
    """The network that all clients share whole.

    Parameters
    ----------
    case : Case
    shape : Shape
        Of the clients' models.

    Attributes
    ----------
    width, classes : int
        See `program.Network`.
    """

    def __init__(self, case: Case, shape: Shape) -> None:
        self._case, self._shape = case, shape
        self.width, self.classes = shape.width, shape.classes

    @cached_property
    def _model(self) -> FlatModel:
        return FlatModel(network_of(self._case.objective, self._case.model, self._shape))

    def outputs(self, vector: Tensor, topology: Topology, features: Tensor) -> Tensor:
        """See `program.Network`."""
        slots = *self._model.slots, *self._model.statistics
        pieces = torch.split(vector, [slot.stop - slot.start for slot in slots])
        tensors = {slot.name: piece.view(slot.shape) for slot, piece in zip(slots, pieces, strict=True)}
        for slot in self._model.statistics:
            tensors[slot.name] = tensors[slot.name].detach()
        nodes = torch.arange(topology.num_nodes)
        batch = Batch(topology, features, torch.zeros_like(nodes), places=nodes)
        found: Tensor = torch.func.functional_call(self._model.module, tensors, (batch, None, "csr"))
        return found
