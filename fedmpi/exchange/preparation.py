"""What clients do before round 1, in exchanges by way of rank 0 (`Algorithm.prepare`).

All clients take the same exchanges. Of each, the ranks first agree on the kind:

- "count": a number of each client goes to rank 0 (Gatherv), and all numbers to every rank (Bcast);
- "show": the rows of all clients, by the same way;
- "answer": each client's answers to all rows go to rank 0 (Gatherv), which sums them in the order of clients,
  and each client gets those to its own (Scatterv).

What comes out is a function of configuration and data, the same on any number of ranks. So it is in no
checkpoint: a run that goes on does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.program import Offer, Offers
from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation
from fedmpi.client.preparing import Preparing
from fedmpi.client.states import States
from fedmpi.clock import Stopwatch
from fedmpi.comm.collectives import Collectives
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.pieces import gather, split
from fedmpi.graphs.packed import pointers
from fedmpi.programs.hooks import Hooks
from fedmpi.store.schema import GENERATED_NODES

Ints = npt.NDArray[np.int64]

_KINDS = ("", "count", "show", "answer")
"""Of exchanges; a rank's message has the place. The first: the program has ended."""

_SILENT, _APART = -1, -2
"""In place of a kind: the rank hosts no client, and its clients do not do the same."""

_FLOAT, _COUNT = 4, 8
"""Bytes of a float32, and of a count."""


@dataclass(frozen=True)
class Prepared:
    """What the phase came to.

    Attributes
    ----------
    nodes, flops, sent, received : int64 [clients]
        Added nodes, FLOPs, and bytes that clients sent and got; known on rank 0.
    executed_flops : int
        Of this rank.
    seconds : float
        On this rank.
    """

    nodes: Ints
    flops: Ints
    sent: Ints
    received: Ints
    executed_flops: int
    seconds: float

    def add_to(self, results: dict[str, npt.NDArray[Any]], round: int) -> None:
        """Write the added nodes into a round's row, and the phase's costs into that of the first."""
        results[GENERATED_NODES.name] = self.nodes
        if round == 0:
            costs = {"model_flops": self.flops, "client_bytes_up": self.sent}
            for name, cost in {**costs, "client_bytes_down": self.received}.items():
                results[name] = results[name] + cost


class _Exchanges:
    """The exchanges of a run.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.

    Attributes
    ----------
    sent, received : int64 [clients]
        Bytes of each client.
    """

    def __init__(self, collectives: Collectives, hosts: Ints) -> None:
        self._collectives = collectives
        self._hosted = [np.flatnonzero(hosts == rank).tolist() for rank in range(collectives.size)]
        self._counts = np.zeros_like(hosts)
        self.sent, self.received = np.zeros_like(hosts), np.zeros_like(hosts)

    def agree(self, offers: Mapping[int, Offer | None]) -> tuple[str, int] | None:
        """Return kind and width of the exchange that all clients take; no kind where their programs ended.

        None, on every rank, where they do not take the same.
        """
        mine = {(_KINDS.index(each.kind), _width(each)) if each else (0, 0) for each in offers.values()}
        own = mine.pop() if len(mine) == 1 else (_APART if mine else _SILENT, 0)
        sizes = [2] * self._collectives.size
        parts = self._collectives.gatherv(np.array(own, np.int64), sizes, "kinds of exchanges")
        agreed = np.array([_APART, 0], np.int64)
        if parts is not None:
            said = {tuple(part.tolist()) for part in parts if part[0] != _SILENT}
            agreed[:] = said.pop() if len(said) == 1 else agreed
        kind, width = self._collectives.bcast(agreed, "kind of the exchange").tolist()
        return None if kind == _APART else (_KINDS[kind], width)

    def take(self, kind: str, width: int, offered: Mapping[int, Any]) -> dict[int, Any]:
        """Return what each hosted client gets in an exchange (a collective call)."""
        return {"count": self._count, "show": self._show, "answer": self._answer}[kind](offered, width)

    def _count(self, offered: Mapping[int, Any], width: int) -> dict[int, Any]:
        self._counts = self.table({client: [number] for client, number in offered.items()}, 1)[:, 0]
        self._counts = self._collectives.bcast(self._counts, "counts of all")
        self.sent += _COUNT
        self.received += _COUNT * len(self._counts)
        return {client: self._counts.copy() for client in offered}

    def _show(self, offered: Mapping[int, Any], width: int) -> dict[int, Any]:
        counts = self._counts
        vectors = self._gather(offered, counts * width, np.float32, "shown rows")
        every = np.zeros((counts.sum(), width), np.float32)
        if vectors is not None:
            np.concatenate(vectors, out=every.reshape(-1))
        every = self._collectives.bcast(every, "shown rows of all")
        self.sent += counts * width * _FLOAT
        self.received += (len(every) - counts) * width * _FLOAT
        return {client: np.split(every.copy(), pointers(counts)[1:-1]) for client in offered}

    def _answer(self, offered: Mapping[int, Any], width: int) -> dict[int, Any]:
        counts, total = self._counts, int(self._counts.sum())
        vectors = self._gather(offered, np.full_like(counts, total * width), np.float32, "answers")
        whole = None
        if vectors is not None:
            summed = np.zeros(total * width, np.float32)
            for answers in vectors:  # in the order of clients
                summed += answers
            parts = np.split(summed, width * pointers(counts)[1:-1])
            whole = np.concatenate([parts[client] for hosted in self._hosted for client in hosted])
        sizes = [int(counts[hosted].sum()) * width for hosted in self._hosted]
        mine = self._collectives.scatterv(whole, sizes, np.float32, place="sums of answers")
        self.sent += (total - counts) * width * _FLOAT
        self.received += counts * width * _FLOAT
        parts_of_mine = split(mine, sorted(offered), lambda client: counts[client] * width)
        return {client: part.reshape(-1, width) for client, part in parts_of_mine.items()}

    def table(self, rows: Mapping[int, Sequence[int]], columns: int) -> Ints:
        """Return numbers of all clients on rank 0, int64 [clients, columns]; zeros elsewhere."""
        vectors = self._gather(rows, np.full_like(self._counts, columns), np.int64, "numbers of clients")
        return np.zeros((len(self._counts), columns), np.int64) if vectors is None else np.stack(vectors)

    def _gather(
        self, own: Mapping[int, Any], lengths: Ints, dtype: npt.DTypeLike, place: str
    ) -> list[npt.NDArray[Any]] | None:
        """Return a vector of each client, in their order, on rank 0; None elsewhere."""
        found = gather(self._collectives, self._hosted, lengths.__getitem__, own, dtype, place)
        return None if found is None else [found[client] for client in range(len(lengths))]


def prepare(
    case: Case,
    algorithm: Hooks,
    collectives: Collectives,
    federation: Federation,
    states: States,
    meter: Meter,
    raise_if_stopped: Callable[[], None],
) -> Prepared:
    """Run the clients' programs before round 1, and add their nodes (a collective call).

    What ranks compute is in the meter's phase "train". They wait for each other asleep: there rank 0 can be
    told why another rank ends the job.

    Raises
    ------
    Interrupted
        On a rank that is asked to stop.
    RankFailed
        On every rank, where the clients do not take the same exchanges.
    """
    watch, clients = Stopwatch(), dict[int, Preparing]()
    for number in states.clients:
        graphs, classes = federation.data(case, number)[0], federation.shapes[number].classes
        clients[number] = Preparing(number, case.seed, classes, graphs, states.device, raise_if_stopped)
    exchanges = _Exchanges(collectives, states.hosts)
    programs = {number: algorithm.prepare(client) for number, client in clients.items()}
    answers: dict[int, Any] = dict.fromkeys(clients)
    while True:
        raise_if_stopped()
        with meter.phase("train"):
            offers = {number: _sent(program, answers[number]) for number, program in programs.items()}
        agreed = exchanges.agree(offers)
        if agreed is None:
            raise algorithm.disagreed()
        kind, width = agreed
        if not kind:
            break
        offered = {number: offer.value for number, offer in offers.items() if offer is not None}
        answers = exchanges.take(kind, width, offered)
        for number, client in clients.items():
            client.note(kind, answers[number])
    with meter.phase("train"):
        states.add_nodes(case, federation, {number: client.added for number, client in clients.items()})
    added = {n: 0 if client.added is None else len(client.added.neighbours) for n, client in clients.items()}
    flops = {number: client.flops for number, client in clients.items()}
    nodes, of_phase = exchanges.table({n: [added[n], flops[n]] for n in clients}, 2).T.copy()
    executed = sum(flops.values())
    return Prepared(nodes, of_phase, exchanges.sent, exchanges.received, executed, watch.wall)


def _width(offer: Offer) -> int:
    return 1 if offer.kind == "count" else int(offer.value.shape[1])


def _sent(program: Offers, answer: Any) -> Offer | None:
    """Return what a client's program gives next; None at its end."""
    try:
        return program.send(answer)
    except StopIteration:
        return None
