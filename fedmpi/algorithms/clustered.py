"""Clustered federated learning as GCFL does it: groups that split in two when their clients disagree.

Xie, Ma, Xiong and Yang, "Federated graph classification over non-IID graphs",
NeurIPS 2021, section 4.3; the criteria are those of Sattler, Mueller and Samek
(2020). A group splits when the mean of its clients' updates is short (Eq. 4)
while some update is long (Eq. 5). The released code and the paper's text differ
in several places; `protocol` sets them all, and each is an option of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Fields, Floats, Ints, Model, Rows
from fedmpi.algorithms.program import Conversation, Server
from fedmpi.algorithms.recorded import field, pairs_field, record_pairs

_RELEASED = {"criterion": "plain", "combine": "average", "warmup": 20, "smallest": 2}
_PAPER = {"criterion": "weighted", "combine": "sum", "warmup": 0, "smallest": 1}


class ClusteredOptions(AlgorithmOptions):
    """Options of all GCFL variants; those left out follow `protocol`."""

    protocol: Literal["released-code", "paper"] = "released-code"
    """Whose values the settings have that are left out."""
    eps1: float = Field(0.05, ge=0)
    """Eq. 4: a group may split when its mean update is shorter."""
    eps2: float = Field(0.1, ge=0)
    """Eq. 5: and when some update is longer."""
    criterion: Literal["plain", "weighted"] = "plain"
    """Mean of Eq. 4: plain (released code), or weighted by training graphs (paper)."""
    combine: Literal["average", "sum"] = "average"
    """A group moves by the weighted average (released code) or the sum (Eq. 7) of its updates."""
    warmup: int = Field(20, ge=0)
    """Rounds in which nothing splits: 20 (released code) or 0 (paper)."""
    smallest: int = Field(2, ge=1)
    """Groups of at most so many clients stay: 2 (released code) or 1 (paper)."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"released-code": _RELEASED, "paper": _PAPER}

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        preset = cls.presets.get(values.get("protocol", "released-code"), {})
        return {**preset, **values}


class Clustered(Algorithm):
    """Base of GCFL and its variants; they say how alike clients are."""

    Options: ClassVar[type[AlgorithmOptions]] = ClusteredOptions
    options: ClusteredOptions
    decides = frozenset({"splits"})
    asks = frozenset({"means"})

    def weights(self, samples: Ints) -> Ints:
        """Return training graphs for the average, ones for the sum."""
        return samples if self.options.combine == "average" else np.ones_like(samples)

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Add the weighted mean of the updates, or their sum (Eq. 7)."""
        factor = 1 if self.options.combine == "average" else num_clients
        return super().update(model, factor * mean, num_clients)

    def decide(self, server: Server) -> Conversation:
        """Cut the groups in two that meet Eq. 5 and Eq. 4."""
        longest = np.zeros(len(server.group))  # of each group's updates, 0 where none
        np.maximum.at(longest, server.group, np.nan_to_num(server.reports["delta_norm"]))
        candidates = self.candidates(server, longest)
        means = yield server.means(candidates, weighted=self.options.criterion == "weighted")
        norms = {group: float(np.sqrt(np.sum(np.square(means[group])))) for group in sorted(means)}
        _record_norms(server, norms, longest)
        of = server.group[server.participants]
        due = [server.participants[of == group] for group, norm in norms.items() if norm < self.options.eps1]
        clients = np.sort(np.concatenate([np.zeros(0, np.int64), *due]))
        rows = np.empty((len(clients), 0), np.float32)
        if "rows" in self.asks:
            rows = yield server.rows(clients, parameters=True)
        cuts = [self.edges(members, rows[np.searchsorted(clients, members)]) for members in due]
        for members, weights in zip(due, cuts, strict=True):
            server.split([members[side] for side in minimum_cut(weights)])
        record_pairs(server, "split_weights", zip(due, cuts, strict=True))

    def candidates(self, server: Server, longest: Floats) -> list[int]:
        """Return the groups past the warm-up, large enough, with an update longer than eps2 (Eq. 5).

        Where clients are sampled, at least two of the group must have trained: there is no cut of one.
        """
        if server.round + 1 <= self.options.warmup:
            return []
        sizes = np.bincount(server.group, minlength=len(server.group))
        trained = np.bincount(server.group[server.participants], minlength=len(server.group))
        return [
            int(g)
            for g in np.unique(server.group)
            if sizes[g] > self.options.smallest and trained[g] > 1 and longest[g] > self.options.eps2
        ]

    @abstractmethod
    def edges(self, members: Ints, rows: Rows) -> Floats:
        """Return the edge weights of a group that is cut, float64 [k, k].

        Parameters
        ----------
        members : int64 [k]
            Its participants.
        rows : float32 [k, trained]
            Their updates, where the class asks for them.
        """

    def fields(self, num_clients: int) -> Fields:
        """Return what the record holds beside the common fields."""
        meaning = "of the client's cluster when its split was considered"
        cuts = "edge weights of the minimum cut, in rounds that split"
        return (
            field("delta_mean", f"norm of the mean update, Eq. 4, {meaning}"),
            field("delta_max", f"largest norm of an update, Eq. 5, {meaning}"),
            *pairs_field("split_weights", cuts, num_clients),
        )


def _record_norms(server: Server, norms: Mapping[int, float], longest: Floats) -> None:
    """Record both sides of the criterion, by the group that a client was in."""
    mean = np.full(len(server.group), np.nan)
    for group, norm in norms.items():
        mean[server.group == group] = norm
    server.record("delta_mean", mean)
    server.record("delta_max", longest[server.group])


def minimum_cut(weights: Floats) -> tuple[Ints, Ints]:
    """Return the two sides of the global minimum cut (Stoer and Wagner 1997) of a complete graph.

    Nodes and edges are added in ascending order, which settles ties; the side
    with node 0 comes first. Weights below 0, as rounding makes them, count as 0.

    Parameters
    ----------
    weights : float64 [k, k]
        Symmetric; k >= 2.
    """
    import networkx as nx

    graph = nx.Graph()
    for i, j in combinations(range(len(weights)), 2):
        graph.add_edge(i, j, weight=max(float(weights[i, j]), 0.0))
    _, sides = nx.stoer_wagner(graph)
    first, second = sorted(sorted(side) for side in sides)
    return np.array(first, np.int64), np.array(second, np.int64)
