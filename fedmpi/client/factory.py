"""What makes the clients of a federation: models by shape, and what an algorithm has each keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.best import BestModel
from fedmpi.client.client import Client
from fedmpi.client.federation import Federation
from fedmpi.client.layouts import MemoryLayout, MessageLayout
from fedmpi.client.optimizer import AdamState
from fedmpi.client.passes import Passes
from fedmpi.graphs.batch import Batch
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import Shape
from fedmpi.objectives.unsupervised import network_of
from fedmpi.programs.hooks import Hooks


class ClientFactory:
    """Makes clients as they are before the first round, with the layout of their states (imports no MPI).

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    federation : Federation
        All clients.
    device : torch.device
        Where the models live.
    chain : sequence of str, optional
        Names of the vectors that clients keep for the exchange's chain, zero at the start.
    initial : mapping of str to Tensor, optional
        What tensors of all models start from.

    Attributes
    ----------
    models, shared : dict of Shape
        Model of the clients of a shape, a workspace, and what of it is communicated.
    keeps_optimizer : bool
        Whether moments are part of a client's state.
    messages, tells : MessageLayout
        What each client sends as it is, and what all get.
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        federation: Federation,
        device: torch.device,
        chain: Sequence[str] = (),
        initial: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> None:
        self._case, self._algorithm, self._federation = case, algorithm, federation
        self._device, self._chain = device, chain
        self.models = {
            shape: FlatModel(network_of(case.objective, case.model, shape), device)
            for shape in set(federation.shapes)
        }
        for model in self.models.values():
            model.initial = initial
        self.keeps_optimizer = case.optimizer.state == "kept"
        self._owns_moments = self.keeps_optimizer or case.kernels == "grouped"
        self._optimizers: dict[tuple[Shape, str], AdamState] = {}
        leaves = partial(algorithm.shares, share=case.share)
        self.shared = {shape: model.shared(leaves) for shape, model in self.models.items()}
        self._memory = {
            shape: MemoryLayout.of(algorithm, model, self.shared[shape], case.share)
            for shape, model in self.models.items()
        }
        first, classes = self.shared[federation.shapes[0]], federation.shapes[0].classes
        self.messages, self.tells = (
            MessageLayout(
                declared(case.model, classes), first.size, federation.num_clients, federation.num_public
            )
            for declared in (algorithm.messages, algorithm.tells)
        )
        public = federation.public(case) if algorithm.reads_outputs else None
        self._public = None if public is None else Batch.of(public, device)

    def make(self, number: int, passes: Passes | None = None) -> Client:
        """Return a client; without passes it can neither train nor be evaluated."""
        case, federation, device = self._case, self._federation, self._device
        shape, split = federation.shapes[number], federation.partition.clients[number]
        model, shared, raw = self.models[shape], self.shared[shape], federation.raws[split.dataset]
        memory, tells, size = self._memory[shape], self.tells, shared.size
        vectors = 1 + len(self._algorithm.sends)
        return Client(
            id=number,
            num_train=split.steps_of,
            num_validation=len(split.examples(raw, "val")),
            weight=int(federation.weights[number]),
            passes=passes,
            model=model,
            shared=shared,
            row=model.initialise(case.seed, number + 1),
            adam=self._adam(shape, "model", model.trained),
            last=torch.full_like(model.parameters, torch.nan) if case.objective.keeps_last_round else None,
            memory=memory.at_start(device),
            moments={name: self._adam(shape, name, size) for name, size in memory.moments.items()},
            incoming={name: torch.zeros(size, device=device) for name in self._algorithm.sends},
            sent={name: torch.zeros(size, device=device) for name in self._algorithm.sends},
            chain={name: torch.zeros(shared.trained, device=device) for name in self._chain},
            start=torch.zeros(size * vectors, device=device) if case.schedule.stale else None,
            best=BestModel(model.length, device) if case.keep == "best" else None,
            told={name: torch.full(tells.shape(name), torch.nan, device=device) for name in tells.messages},
            messages=self.messages,
            public=self._public,
            algorithm=self._algorithm,
            width=shape.width,
        )

    def _adam(self, shape: Shape, name: str, size: int) -> AdamState:
        if self._owns_moments or (shape, name) not in self._optimizers:
            self._optimizers[shape, name] = AdamState(size, self._device)
        return self._optimizers[shape, name]
