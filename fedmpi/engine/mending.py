"""The phase before the first round in which clients mend their parts of a graph (`capabilities.Mends`).

Each client trains a generator alone, then in exchanges with the others by way of rank 0:

1. all generated features go to rank 0 (Gatherv) and from there to every rank (Bcast);
2. each client answers every row of another client by its difference to the nearest of its own nodes
   (Gatherv);
3. rank 0 sums the answers in the order of clients, and each client gets those to its rows (Scatterv).

What comes out is a function of configuration and data, the same on any number of ranks. So it is in no
checkpoint: a run that goes on does the phase again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.case.schema import AdamOptions, Case
from fedmpi.clock import Stopwatch
from fedmpi.comm.collectives import Collectives
from fedmpi.engine.federation import Federation
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.optimizer import AdamState, adam_step
from fedmpi.engine.states import States
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.mended import Generated, Impaired, impaired
from fedmpi.graphs.packed import GraphSet, pointers
from fedmpi.models import neighgen
from fedmpi.models.flat import FlatModel
from fedmpi.models.generator import Generator
from fedmpi.models.neighgen import Draws, NeighGen, no_dropout
from fedmpi.models.neighgen_flops import NeighGenFlops
from fedmpi.seeds import Purpose, key, permutation
from fedmpi.store.schema import GENERATED_NODES, Field

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

_FLOAT = 4
"""Bytes of a float32."""

_COUNT = 8
"""Bytes of a client's number of rows."""


def fields_of(hooks: Hooks) -> tuple[Field, ...]:
    """Return what the record holds of mended parts."""
    return (GENERATED_NODES,) if hooks.mending else ()


class Mender:
    """A client that trains a generator on its part.

    Parameters
    ----------
    settings : Generator
    graphs : GraphSet
        The client's part with its training examples.
    classes : int
    seed, client : int
        Decide initialisation, hidden nodes, noise and dropout.
    device : torch.device

    Attributes
    ----------
    flops : int
        Of all passes so far.
    """

    def __init__(
        self,
        settings: Generator,
        graphs: GraphSet,
        classes: int,
        seed: int,
        client: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self._settings, self._graphs, self._seed, self._client = settings, graphs, seed, client
        self._features = torch.from_numpy(graphs.features).clone().to(device)
        width = self._features.shape[1]
        self._flops = NeighGenFlops(settings, width, classes)
        self.flops = 0
        self._part = impaired(graphs.topology, _hidden(settings, graphs, key(seed, Purpose.MENDING, client)))
        self._batch = _batch(graphs, self._part, device)
        self._x = self._features.index_select(0, torch.from_numpy(self._part.kept).to(device))
        self._missing = torch.from_numpy(self._part.missing).to(device)
        self._network = NeighGen(settings, width, classes)
        self._model = FlatModel(self._network, device)
        self._model.initialise(seed, -(client + 1))  # a client's own model is of owner client + 1
        self._optimizer = AdamOptions(lr=settings.lr, weight_decay=settings.weight_decay)
        self._scale = neighgen.feature_scale(settings, len(self._part.kept), width)

    def train_alone(self) -> None:
        """Take the epochs in which all parts of the network train (Eq. 5)."""
        adam = AdamState(self._model.length, self._features.device)
        for epoch in range(self._settings.epochs):
            draws = Draws(self._seed, self._client, epoch)
            drop = draws.dropout(self._settings.dropout)
            z, numbers = self._network.states(self._batch, self._x, drop)
            counts = self._network.counts(numbers)
            rows = self._network.neighbours(z, counts, draws, drop)
            loss = self._settings.number_weight * neighgen.number_loss(numbers, self._missing)
            own, pairs = self._own_loss(rows, counts, drop)
            self._step(loss + own, self._model.parameters, self._model.gradient, adam)
            self.flops += self._flops.epoch(*self._sizes(counts), pairs)
        self._freeze()

    def _own_loss(self, rows: Tensor, counts: Tensor, drop: neighgen.Drop) -> tuple[Tensor, int]:
        """Return the losses of features and classes, and the pairs of nodes that were compared."""
        settings, part = self._settings, self._part
        owners = torch.repeat_interleave(counts)
        numbers = owners.cpu().numpy()
        held, nearest = neighgen.nearest_neighbours(
            rows, numbers, part.hidden_ptr, part.hidden, self._features
        )
        held_rows = rows.index_select(0, torch.from_numpy(held).to(rows.device))
        targets = self._features.index_select(0, torch.from_numpy(nearest).to(rows.device))
        loss = settings.feature_weight * neighgen.feature_loss(held_rows, targets, self._scale)
        pairs = int(np.diff(part.hidden_ptr)[numbers].sum())
        if self._batch.num_places:
            outputs = self._network.classifier.mended(self._batch, self._x, rows, owners, drop)
            known = self._batch.read(outputs, "sum")
            loss = loss + settings.class_weight * torch.nn.functional.cross_entropy(known, self._batch.labels)
        return loss, pairs

    def _step(self, loss: Tensor, parameters: Tensor, gradient: Tensor, adam: AdamState) -> None:
        self._model.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        adam_step(self._optimizer, adam, parameters, gradient)

    def _sizes(self, counts: Tensor) -> tuple[int, int, int, int]:
        """Return nodes, edges, nodes that get neighbours, and these."""
        topology = self._batch.topology
        return topology.num_nodes, topology.num_edges, int((counts > 0).sum()), int(counts.sum())

    def _freeze(self) -> None:
        """Leave fGen alone to train; states and numbers are those of evaluation from now on."""
        for name, parameter in self._network.named_parameters():
            parameter.requires_grad_(name.startswith("features."))
        with torch.no_grad():
            self._z, numbers = self._network.states(self._batch, self._x, no_dropout)
        self._counts = self._network.counts(numbers)
        self.flops += self._flops.encoding(self._batch.topology.num_nodes, self._batch.topology.num_edges)
        start = next(slot.start for slot in self._model.slots if slot.name.startswith("features."))
        self._tail = slice(start, self._model.trained)
        self._adam = AdamState(self._model.trained - start, self._features.device)

    @property
    def num_rows(self) -> int:
        """Number of rows of `generate`."""
        return int(self._counts.sum())

    def generate(self, exchange: int) -> Floats:
        """Return the generated features of an exchange, which the others get, float32 [num_rows, d]."""
        self._draws = Draws(self._seed, self._client, self._settings.epochs + exchange)
        drop = self._draws.dropout(self._settings.dropout)
        self._rows = self._network.neighbours(self._z, self._counts, self._draws, drop)
        rows: Floats = self._rows.detach().cpu().numpy()
        return rows

    def answer(self, rows: Floats) -> Floats:
        """Return each row of another client minus this client's nearest node, float32 [R, d]."""
        asked = torch.from_numpy(rows).clone().to(self._features.device)
        self.flops += self._flops.answers(len(rows), len(self._features))
        answer: Floats = neighgen.differences_to_nearest(asked, self._features).cpu().numpy()
        return answer

    def learn(self, answers: Floats) -> None:
        """Take the step of an exchange (Eq. 6).

        Parameters
        ----------
        answers : float32 [num_rows, d]
            Sum over the other clients of what they answered the rows of `generate`.
        """
        if not self.num_rows:
            return  # nothing that was generated depends on fGen
        own, pairs = self._own_loss(self._rows, self._counts, self._draws.dropout(self._settings.dropout))
        slope = 2 * self._settings.feature_weight * self._settings.others_weight * self._scale
        theirs = torch.from_numpy(answers).clone().to(self._rows.device) * slope
        tail = self._tail
        loss = own + (self._rows * theirs).sum()
        self._step(loss, self._model.parameters[tail], self._model.gradient[tail], self._adam)
        self.flops += self._flops.exchange(*self._sizes(self._counts), pairs)

    @torch.no_grad()
    def mend(self) -> Generated:
        """Return the nodes that are added to the whole part."""
        whole = Batch.of(self._graphs, self._features.device)
        z, numbers = self._network.states(whole, self._features, no_dropout)
        counts = self._network.counts(numbers)
        last = Draws(self._seed, self._client, self._settings.epochs + self._settings.exchanges)
        rows = self._network.neighbours(z, counts, last, no_dropout)
        self.flops += self._flops.encoding(whole.topology.num_nodes, whole.topology.num_edges)
        self.flops += self._flops.features(int((counts > 0).sum()))
        return Generated(torch.repeat_interleave(counts).cpu().numpy(), rows.cpu().numpy())


def _hidden(settings: Generator, graphs: GraphSet, stream: int) -> Ints:
    """Return the nodes that are hidden: the share of all, one at least, and one fewer than all at most."""
    nodes = graphs.topology.num_nodes
    count = min(max(1, int(settings.hidden_share * nodes + 0.5)), nodes - 1)
    return np.sort(permutation(stream, nodes)[:count])


def _batch(graphs: GraphSet, part: Impaired, device: torch.device | str) -> Batch:
    """Return the impaired graph with the training examples that are left; its features are not read."""
    assert graphs.places is not None
    kept = np.isin(graphs.places, part.kept)
    places, labels = np.searchsorted(part.kept, graphs.places[kept]), graphs.labels[kept]
    nodes = len(part.kept)
    table = np.zeros((1, 1), np.float32)
    impaired_graph = GraphSet(part.topology, table, np.zeros(nodes, np.int64), labels, places=places)
    return Batch.of(impaired_graph, device)


class _Exchange:
    """What travels between clients in an exchange, by way of rank 0.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
    counts : int64 [clients]
        Rows of each client.
    width : int
    """

    def __init__(self, collectives: Collectives, hosts: Ints, counts: Ints, width: int) -> None:
        self._collectives, self._counts, self._width = collectives, counts, width
        self._hosted = [np.flatnonzero(hosts == rank).tolist() for rank in range(collectives.size)]
        self.starts = pointers(counts)
        self.total = int(counts.sum())

    def _by_client(self, parts: Sequence[Floats], rows: Sequence[int]) -> dict[int, Floats]:
        """Return what rank 0 gathered by client, [rows of the client, width] each."""
        found: dict[int, Floats] = {}
        for hosted, part in zip(self._hosted, parts, strict=True):
            cuts = np.cumsum([rows[client] * self._width for client in hosted])[:-1]
            pieces = np.split(part, cuts)[: len(hosted)]
            found |= {c: p.reshape(-1, self._width) for c, p in zip(hosted, pieces, strict=True)}
        return found

    def share(self, own: Mapping[int, Floats]) -> Floats:
        """Return the rows of all clients in their order, [total, width], on every rank."""
        sizes = [int(self._counts[hosted].sum()) * self._width for hosted in self._hosted]
        parts = self._collectives.gatherv(_flat(own), sizes, kind="generated features")
        every = np.empty((self.total, self._width), np.float32)
        if parts is not None:
            held = self._by_client(parts, self._counts.tolist())
            np.concatenate([held[client] for client in range(len(self._counts))], out=every)
        return self._collectives.bcast(every, kind="generated features of all")

    def sums(self, answers: Mapping[int, Floats]) -> dict[int, Floats]:
        """Return, by hosted client, the sum of all answers to its rows, in the order of clients.

        Parameters
        ----------
        answers : mapping of int to float32 [total, width]
            Of each hosted client, to the rows of all; 0 to its own.
        """
        sizes = [len(hosted) * self.total * self._width for hosted in self._hosted]
        parts = self._collectives.gatherv(_flat(answers), sizes, kind="answers")
        whole = None
        if parts is not None:
            held = self._by_client(parts, [self.total] * len(self._counts))
            total = np.zeros((self.total, self._width), np.float32)
            for client in range(len(self._counts)):
                total += held[client]
            order = [total[self._rows_of(client)] for hosted in self._hosted for client in hosted]
            whole = np.concatenate(order).reshape(-1)
        counts = [int(self._counts[hosted].sum()) * self._width for hosted in self._hosted]
        mine = self._collectives.scatterv(whole, counts, np.float32, kind="sums of answers")
        clients = self._hosted[self._collectives.rank]
        cuts = np.cumsum(self._counts[clients] * self._width)[:-1]
        pieces = np.split(mine, cuts)[: len(clients)]
        return {c: p.reshape(-1, self._width) for c, p in zip(clients, pieces, strict=True)}

    def _rows_of(self, client: int) -> slice:
        return slice(self.starts[client], self.starts[client + 1])

    def answer(self, menders: Mapping[int, Mender], every: Floats) -> dict[int, Floats]:
        """Return what each hosted client answers the rows of all others, client by client."""
        answers = {}
        for number, mender in menders.items():
            answers[number] = np.zeros_like(every)
            for other in range(len(self._counts)):
                if other != number and self._counts[other]:
                    rows = self._rows_of(other)
                    answers[number][rows] = mender.answer(every[rows])
        return answers

    @property
    def client_bytes(self) -> int:
        """Bytes that a client sends, and as many that it gets: its own rows or answers, and the others'."""
        return self.total * self._width * _FLOAT


def _flat(rows: Mapping[int, Floats]) -> Floats:
    """Return the rows of the hosted clients one after another, float32 [*]."""
    parts = [rows[client].reshape(-1) for client in sorted(rows)]
    return np.concatenate([*parts, np.zeros(0, np.float32)])


@dataclass(frozen=True)
class Mended:
    """What the phase came to.

    Attributes
    ----------
    nodes, flops : int64 [clients]
        Generated nodes, and FLOPs of the phase; known on rank 0.
    client_bytes : (int, int)
        What each client sends, and gets.
    executed_flops : int
        Of this rank.
    seconds : float
        On this rank.
    """

    nodes: Ints
    flops: Ints
    client_bytes: tuple[int, int]
    executed_flops: int
    seconds: float

    def add_to(self, results: dict[str, npt.NDArray[Any]], round: int) -> None:
        """Write the generated nodes into a round's row, and the phase's costs into that of the first."""
        results[GENERATED_NODES.name] = self.nodes
        if round == 0:
            costs = (self.flops, *self.client_bytes)
            for name, cost in zip(
                ("model_flops", "client_bytes_up", "client_bytes_down"), costs, strict=True
            ):
                results[name] = results[name] + cost


def mend(
    case: Case, settings: Generator, collectives: Collectives, federation: Federation, states: States
) -> Mended:
    """Mend the parts of all clients, and give the hosted ones theirs (a collective call)."""
    watch, menders = Stopwatch(), dict[int, Mender]()
    for number in states.clients:
        graphs, shape = federation.data(case, number)[0], federation.shapes[number]
        menders[number] = Mender(settings, graphs, shape.classes, case.seed, number, states.device)
        menders[number].train_alone()
    exchange = _start_exchange(collectives, states.hosts, menders, federation.shapes[0].width)
    exchanges = settings.exchanges if exchange.total and federation.num_clients > 1 else 0
    for number in range(exchanges):
        every = exchange.share({client: mender.generate(number) for client, mender in menders.items()})
        for client, answers in exchange.sums(exchange.answer(menders, every)).items():
            menders[client].learn(answers)
    generated = {client: mender.mend() for client, mender in menders.items()}
    states.mend(case, federation, generated)
    flops = [mender.flops for mender in menders.values()]
    nodes = [len(each.neighbours) for each in generated.values()]
    gathered = _gather(collectives, states.hosts, np.array([nodes, flops], np.int64).T)
    travelled = exchanges * exchange.client_bytes
    traffic = travelled + _COUNT, travelled + _COUNT * federation.num_clients
    return Mended(gathered[0], gathered[1], traffic, sum(flops), watch.wall)


def _start_exchange(
    collectives: Collectives, hosts: Ints, menders: Mapping[int, Mender], width: int
) -> _Exchange:
    """Let all ranks know how many rows each client will show."""
    rows = np.array([[mender.num_rows] for mender in menders.values()], np.int64)
    counts = _gather(collectives, hosts, rows.reshape(-1, 1))[0]
    return _Exchange(collectives, hosts, collectives.bcast(counts, kind="numbers of generated nodes"), width)


def _gather(collectives: Collectives, hosts: Ints, rows: Ints) -> list[Ints]:
    """Return the columns of a table of clients on rank 0, int64 [clients] each; zeros elsewhere."""
    columns = rows.shape[1]
    hosted = [np.flatnonzero(hosts == rank) for rank in range(collectives.size)]
    sizes = [len(clients) * columns for clients in hosted]
    parts = collectives.gatherv(rows.reshape(-1), sizes, kind="generated nodes")
    table = np.zeros((len(hosts), columns), np.int64)
    if parts is not None:
        for clients, part in zip(hosted, parts, strict=True):
            table[clients] = part.reshape(-1, columns)
    return list(table.T.copy())
