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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation
from fedmpi.client.mender import Mender
from fedmpi.client.states import States
from fedmpi.clock import Stopwatch
from fedmpi.comm.collectives import Collectives
from fedmpi.exchange.meter import Meter
from fedmpi.graphs.packed import pointers
from fedmpi.models.generator import Generator
from fedmpi.programs.hooks import Hooks
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
        parts = self._collectives.gatherv(_flat(own), sizes, "generated features")
        every = np.empty((self.total, self._width), np.float32)
        if parts is not None:
            held = self._by_client(parts, self._counts.tolist())
            np.concatenate([held[client] for client in range(len(self._counts))], out=every)
        return self._collectives.bcast(every, "generated features of all")

    def sums(self, answers: Mapping[int, Floats]) -> dict[int, Floats]:
        """Return, by hosted client, the sum of all answers to its rows, in the order of clients.

        Parameters
        ----------
        answers : mapping of int to float32 [total, width]
            Of each hosted client, to the rows of all; 0 to its own.
        """
        sizes = [len(hosted) * self.total * self._width for hosted in self._hosted]
        parts = self._collectives.gatherv(_flat(answers), sizes, "answers")
        whole = None
        if parts is not None:
            held = self._by_client(parts, [self.total] * len(self._counts))
            total = np.zeros((self.total, self._width), np.float32)
            for client in range(len(self._counts)):
                total += held[client]
            order = [total[self._rows_of(client)] for hosted in self._hosted for client in hosted]
            whole = np.concatenate(order).reshape(-1)
        counts = [int(self._counts[hosted].sum()) * self._width for hosted in self._hosted]
        mine = self._collectives.scatterv(whole, counts, np.float32, place="sums of answers")
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
    case: Case,
    settings: Generator,
    collectives: Collectives,
    federation: Federation,
    states: States,
    meter: Meter,
    raise_if_stopped: Callable[[], None],
) -> Mended:
    """Mend the parts of all clients, and give the hosted ones theirs (a collective call).

    What ranks compute is in the meter's phase "train". They wait for each other asleep: there rank 0 can be
    told why another rank ends the job.

    Raises
    ------
    Interrupted
        On a rank that is asked to stop.
    """
    watch, menders = Stopwatch(), dict[int, Mender]()
    with meter.phase("train"):
        for number in states.clients:
            graphs, shape = federation.data(case, number)[0], federation.shapes[number]
            menders[number] = Mender(settings, graphs, shape.classes, case.seed, number, states.device)
            menders[number].train_alone(raise_if_stopped)
    exchange = _start_exchange(collectives, states.hosts, menders, federation.shapes[0].width)
    exchanges = settings.exchanges if exchange.total and federation.num_clients > 1 else 0
    for number in range(exchanges):
        raise_if_stopped()
        with meter.phase("train"):
            own = {client: mender.generate(number) for client, mender in menders.items()}
        every = exchange.share(own)
        with meter.phase("train"):
            answers = exchange.answer(menders, every)
        sums = exchange.sums(answers)
        with meter.phase("train"):
            for client, answers_to_it in sums.items():
                menders[client].learn(answers_to_it)
    with meter.phase("train"):
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
    return _Exchange(collectives, hosts, collectives.bcast(counts, "numbers of generated nodes"), width)


def _gather(collectives: Collectives, hosts: Ints, rows: Ints) -> list[Ints]:
    """Return the columns of a table of clients on rank 0, int64 [clients] each; zeros elsewhere."""
    columns = rows.shape[1]
    hosted = [np.flatnonzero(hosts == rank) for rank in range(collectives.size)]
    sizes = [len(clients) * columns for clients in hosted]
    parts = collectives.gatherv(rows.reshape(-1), sizes, "generated nodes")
    table = np.zeros((len(hosts), columns), np.int64)
    if parts is not None:
        for clients, part in zip(hosted, parts, strict=True):
            table[clients] = part.reshape(-1, columns)
    return list(table.T.copy())
