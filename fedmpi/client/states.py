"""The clients of a rank: how they are made, their common start, and their states by client id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.compiled_passes import CompiledPasses, MoleculePasses
from fedmpi.client.deltas import Row
from fedmpi.client.factory import ClientFactory
from fedmpi.client.federation import Federation, groups_of
from fedmpi.client.fixed_batches import FixedBatches
from fedmpi.client.groups import ClientGroup, Group
from fedmpi.client.node_passes import NodePasses
from fedmpi.client.passes import Passes, Supervised
from fedmpi.client.state import StateLayout
from fedmpi.client.targets import TARGETS, targets_of
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.client.unsupervised import UnsupervisedPasses
from fedmpi.client.view_batches import CompiledBatches, TorchBatches, ViewBatches
from fedmpi.comm.devices import choose
from fedmpi.comm.world import World
from fedmpi.graphs.mended import Generated, mended
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.encoder import FastEncoder
from fedmpi.kernels.molecules.fast import FastMolecules
from fedmpi.kernels.networks import fast_network, grouped_network
from fedmpi.kernels.pooled_network import FastNetwork
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.mvgrl import MvgrlEncoder
from fedmpi.models.options import FedGraphNNOptions, GinEncoderOptions, Shape
from fedmpi.objectives.unsupervised import Network
from fedmpi.programs.hooks import Hooks

SERVER = 0
"""Owner number of the server's initial model; client i initialises its own layers as owner i + 1."""


class States:
    """Constructs the clients of this rank, starts them from one model, saves and restores their states.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    world : World
    federation : Federation
        All clients.
    chain : sequence of str, optional
        Names of the vectors that clients keep for the exchange's chain, zero at the start.
    initial : mapping of str to Tensor, optional
        What tensors of all models start from.

    Attributes
    ----------
    clients : dict of int to Client
        Hosted by this rank, ascending by id.
    hosts : int64 [clients]
        Rank of each client.
    size, trained : int
        Number of elements that travel, and of those of a model before the running statistics.
    shape : Shape
        Of the first client's model.
    tensors : tuple of tuples of int
        Shapes of the tensors that the latter are.
    device : torch.device
        Where this rank's models live.
    messages, tells : MessageLayout
        What each client sends as it is, and what all get.
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        world: World,
        federation: Federation,
        chain: Sequence[str] = (),
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        self._world = world
        self.hosts = federation.hosts(case, world.workers(shared=case.shared))
        self._shapes, self.shape = federation.shapes, federation.shapes[0]
        self.device = choose(case.device, world.local_rank)
        self._factory = ClientFactory(case, algorithm, federation, self.device, chain, initial or {})
        self._models, self._shared = self._factory.models, self._factory.shared
        self._keeps_optimizer = self._factory.keeps_optimizer
        self.messages, self.tells = self._factory.messages, self._factory.tells
        self._task = federation.task
        self._kernels: dict[Shape, FastNetwork | FastMolecules | FastEncoder] = {}
        self._population = federation.partition.population
        self._pool: Supervised | None = None
        self._scratch, self._view_scratch = Scratch(), (Scratch(), Scratch())
        first = self._shared[federation.shapes[0]]
        self.size, self.trained = first.size * (1 + len(algorithm.sends)), first.trained
        self.tensors = first.shapes
        self.clients = {
            number: self._factory.make(number, self._passes(case, federation, number))
            for number in np.flatnonzero(self.hosts == world.rank).tolist()
        }
        self.groups = self._groups(case, federation)

    def _groups(self, case: Case, federation: Federation) -> list[Group]:
        """Return the hosted clients as they train: together where the kernels are "grouped"."""
        if case.kernels != "grouped":
            return [Group([client]) for client in self.clients.values()]
        groups: list[Group] = []
        for members in groups_of(self._shapes, case.group_size):
            if members[0] in self.clients:  # a group is hosted by one rank
                shape = self._shapes[members[0]]
                model, kind = self._models[shape], TARGETS[self._task.labels]
                groups.append(
                    ClientGroup(
                        [self.clients[number] for number in members],
                        [self._targeted(*federation.data(case, number)) for number in members],
                        grouped_network(case.model, model, kind, of=self._task.of),
                        federation.flops[shape],
                        self._task,
                    )
                )
        return groups

    def _targeted(self, train: GraphSet, held_out: GraphSet) -> tuple[GraphSet, GraphSet]:
        """Return a client's graphs with targets in place of labels."""
        parts = [replace(part, labels=targets_of(self._task, part.labels)) for part in (train, held_out)]
        return parts[0], parts[1]

    def _passes(self, case: Case, federation: Federation, number: int) -> Passes | None:
        if case.kernels == "grouped":
            return None
        if not case.objective.supervised:
            return self._unsupervised(case, federation, number)
        if self._population is None:
            return self._supervised(case, federation, number, *federation.data(case, number))
        held_out = federation.graphs(case, federation.partition.clients[number].held_out)
        if self._pool is not None:
            return self._pool.with_held_out(held_out)
        pool = federation.graphs(case, self._population.pool)
        self._pool = self._supervised(case, federation, number, pool, held_out)
        return self._pool

    def _supervised(
        self, case: Case, federation: Federation, number: int, train: GraphSet, held_out: GraphSet
    ) -> Supervised:
        shape = self._shapes[number]
        flops = federation.flops[shape]
        if case.kernels == "compiled":
            kernels = self._compiled(case, shape)
            if isinstance(kernels, FastMolecules):
                return MoleculePasses(train, held_out, kernels, flops, self._task)
            passes = NodePasses if self._task.of == "node" else CompiledPasses
            return passes(train, held_out, kernels, flops, self._task)
        return TorchPasses(train, held_out, self._models[shape], case.kernels, flops, self._task)

    def _unsupervised(self, case: Case, federation: Federation, number: int) -> Passes:
        shape, objective = self._shapes[number], case.objective.make()
        model, flops = self._models[shape], federation.flops[shape]
        by_epoch, graphs = not case.objective.keeps_last_round, federation.views(case, number)
        batches: ViewBatches
        network = Network.of(model.module)
        if case.kernels == "compiled":
            encoder = self._compiled(case, shape)
            network = Network.compiled(model, encoder, self._scratch)
            batches = CompiledBatches(*graphs, objective, flops, encoder)
        elif isinstance(model.module, MvgrlEncoder) and not model.module.registered:
            batches = FixedBatches(*graphs, objective, flops, self.device, module=model.module)
        else:
            batches = TorchBatches(*graphs, objective, flops, self.device)
        return UnsupervisedPasses(batches, model, objective, flops, network, by_epoch)

    def _compiled(self, case: Case, shape: Shape) -> Any:
        """Return the compiled kernels of all clients of a shape."""
        options, model, kind = case.model, self._models[shape], TARGETS[self._task.labels]
        if shape not in self._kernels:
            if isinstance(options, FedGraphNNOptions):
                self._kernels[shape] = FastMolecules(options, model, kind)
            elif isinstance(options, GinEncoderOptions):
                self._kernels[shape] = FastEncoder(options, model, self._view_scratch)
            else:
                self._kernels[shape] = fast_network(options, model, self._scratch, kind, of=self._task.of)
        return self._kernels[shape]

    def add_nodes(self, case: Case, federation: Federation, added: Mapping[int, Generated | None]) -> None:
        """Give hosted clients their graph with further nodes."""
        for number, client in self.clients.items():
            if (nodes := added[number]) is not None:
                parts = [mended(part, nodes) for part in federation.data(case, number)]
                client.passes = self._supervised(case, federation, number, parts[0], parts[1])

    def num_parameters(self) -> list[int]:
        """Return the number of parameters of each client's model."""
        return [self._models[shape].num_parameters for shape in self._shapes]

    def start(self, seed: int) -> Row:
        """Send the server's initial model to all; return its shared part, float32 [size].

        The vectors that follow it are zero.
        """
        shape = self._shapes[0]
        initial = np.zeros(self.size, np.float32)
        if self._world.is_root:
            row = self._models[shape].initialise(seed, SERVER)
            initial[: self._shared[shape].size] = self._shared[shape].pack(row).cpu().numpy()
        self._world.collectives.bcast(initial, kind="initial model")
        for client in self.clients.values():
            client.shared.unpack(torch.from_numpy(initial), client.row)
            client.memory.start(client.row)
        return initial

    def layouts(self) -> dict[int, StateLayout]:
        """Return the layout of each hosted client's state."""
        return {number: client.layout(self._keeps_optimizer) for number, client in self.clients.items()}

    def draw(self, seed: int, round: int) -> Int | None:
        """Give the places hosted here the round's clients of the population; return all, int64 [clients]."""
        if self._population is None:
            return None
        chosen = self._population.sampled(seed, round, len(self.hosts))
        for number, client in self.clients.items():
            client.drawn = self._population.drawn(int(chosen[number]))
        return chosen

    def saved(self) -> dict[int, Row]:
        """Return the state of each hosted client."""
        return {number: self.saved_of(number) for number in self.clients}

    def saved_of(self, number: int) -> Row:
        """Return the state of a hosted client."""
        return self.clients[number].state(self._keeps_optimizer)

    def restore(self, states: Mapping[int, Row]) -> None:
        """Give hosted clients states that were theirs."""
        for number, state in states.items():
            self.clients[number].restore(state, self._keeps_optimizer)

    def group_models(self, group: Int) -> dict[int, Row]:
        """Return the models of the groups that this rank hosts members of.

        A group's model is the shared part of any member's parameters between rounds.
        """
        models: dict[int, Row] = {}
        for number, client in self.clients.items():
            if int(group[number]) not in models:
                models[int(group[number])] = client.received()
        return models
