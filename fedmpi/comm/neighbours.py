"""Messages between the ranks of a graph, one neighbourhood collective for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from fedmpi.comm.collectives import Collectives
from fedmpi.comm.waiting import Partners

Bytes = npt.NDArray[np.uint8]
Links = frozenset[tuple[int, int]]
"""Pairs of different ranks: one that sends and one that receives."""


class Neighbours:
    """Graph communicators of a run, one for each distinct set of links.

    They are made when a set is first used. Those of a run are freed when the next one of the process begins,
    where all ranks are at the same point; the last ones at the end of MPI.

    Parameters
    ----------
    collectives : Collectives
        Which count these calls; the payload of one on a rank is what this rank hands over.
    """

    def __init__(self, collectives: Collectives) -> None:
        self._collectives, self._graphs = collectives, collectives.graphs
        for graph in self._graphs.values():
            graph.Free()
        self._graphs.clear()

    def exchange(
        self,
        links: Collection[tuple[int, int]],
        parts: Mapping[int, Bytes],
        counts: Mapping[int, int],
        kind: str = "models",
    ) -> dict[int, Bytes]:
        """Send a part along each link from this rank; return the part of each link to it (a collective call).

        Parameters
        ----------
        links : collection of (int, int)
            All, the same on every rank.
        parts : mapping of int to uint8 [*]
            By rank that receives; a rank that is left out gets nothing.
        counts : mapping of int to int
            Bytes that come, by rank that sends.
        kind : str, optional
            Names the messages in an audit.
        """
        collectives, rank = self._collectives, self._collectives.rank
        senders = sorted(source for source, target in links if target == rank)
        receivers = sorted(target for source, target in links if source == rank)
        nothing, element = np.zeros(0, np.uint8), MPI.Datatype.fromcode("B")
        own = [parts.get(other, nothing) for other in receivers]
        sizes, coming = [len(part) for part in own], [counts.get(other, 0) for other in senders]
        whole = np.empty(sum(coming), np.uint8)
        source = [np.concatenate([nothing, *own]), (sizes, _starts(sizes)), element]
        target = [whole, (coming, _starts(coming)), element]
        graph = self._graph(frozenset(links), senders, receivers)
        collectives.neighbor_alltoallv(graph, source, target, Partners(senders, receivers))
        found = dict(zip(senders, np.split(whole, _starts(coming)[1:]), strict=True)) if senders else {}
        for other, part in found.items():
            collectives.note(kind, part, other)
        for other, part in zip(receivers, own, strict=True):
            collectives.note(kind, part, receiver=other)
        return found

    def _graph(self, links: Links, senders: list[int], receivers: list[int]) -> MPI.Distgraphcomm:
        if links not in self._graphs:
            self._graphs[links] = self._collectives.graph(senders, receivers)
        return self._graphs[links]


def _starts(counts: list[int]) -> list[int]:
    return [0, *accumulate(counts)][:-1]
