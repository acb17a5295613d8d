"""Clustered federated learning as GCFL does it: groups that split in two when their clients disagree.

Xie, Ma, Xiong and Yang, "Federated graph classification over non-IID graphs",
NeurIPS 2021, section 4.3; the criteria are those of Sattler, Mueller and Samek
(2020). A group splits when the mean of its clients' updates is short (Eq. 4)
while some update is long (Eq. 5). The released code and the paper's text differ
in several places; `protocol` sets them all, and each is an option of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Floats, Ints, Model
from fedmpi.algorithms.capabilities import Division, Reports, Splits
from fedmpi.store.schema import Field as RecordField

_MOST_RECORDED = 256
"""Clients beyond which the matrix of a split is not recorded: it takes clients^2 numbers a round."""

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


class Clustered(Splits, Algorithm):
    """Base of GCFL and its variants; they say how a group is split."""

    Options: ClassVar[type[AlgorithmOptions]] = ClusteredOptions
    options: ClusteredOptions

    def weights(self, samples: Ints) -> Ints:
        """Return training graphs for the average, ones for the sum."""
        return samples if self.options.combine == "average" else np.ones_like(samples)

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """Add the weighted mean of the updates, or their sum (Eq. 7)."""
        factor = 1 if self.options.combine == "average" else num_clients
        return super().update(model, factor * mean, num_clients)

    def split_candidates(self, round: int, group: Ints, reports: Reports) -> list[int]:
        """Return the groups past the warm-up, large enough, with an update longer than eps2 (Eq. 5).

        Where clients are sampled, at least two of the group must have trained: there is no cut of one.
        """
        if round + 1 <= self.options.warmup:
            return []
        longest = longest_update(group, reports["delta_norm"])
        sizes = np.bincount(group, minlength=len(group))
        trained = np.bincount(group[~np.isnan(reports["delta_norm"])], minlength=len(group))
        return [
            int(g)
            for g in np.unique(group)
            if sizes[g] > self.options.smallest and trained[g] > 1 and longest[g] > self.options.eps2
        ]

    @property
    def criterion_is_weighted(self) -> bool:
        """Whether Eq. 4's mean is weighted by training graphs."""
        return self.options.criterion == "weighted"

    def should_split(self, mean_norm: float) -> bool:
        """Return whether the mean update is shorter than eps1 (Eq. 4)."""
        return mean_norm < self.options.eps1

    def fields(self, num_clients: int) -> tuple[RecordField, ...]:
        """Return what the record holds beside the common fields."""
        meaning = "of the client's cluster when its split was considered"
        found = (
            _field("delta_mean", ("round", "client"), f"norm of the mean update, Eq. 4, {meaning}"),
            _field("delta_max", ("round", "client"), f"largest norm of an update, Eq. 5, {meaning}"),
        )
        if num_clients > _MOST_RECORDED:
            return found
        matrix = _field(
            "split_weights",
            ("round", "client", "client"),
            "edge weights of the minimum cut, in rounds that split",
        )
        return (*found, matrix)


def _field(name: str, axes: tuple[str, ...], meaning: str) -> RecordField:
    return RecordField(name, axes, "f8", "1", meaning, "result")


def longest_update(group: Ints, delta_norm: Floats) -> Floats:
    """Return the largest norm of each group's updates, float64 [clients] by group number; 0 where none."""
    longest = np.zeros(len(group))
    np.maximum.at(longest, group, np.nan_to_num(delta_norm))
    return longest


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
    count = len(weights)
    graph.add_nodes_from(range(count))
    for i in range(count):
        for j in range(i + 1, count):
            graph.add_edge(i, j, weight=max(float(weights[i, j]), 0.0))
    _, sides = nx.stoer_wagner(graph)
    first, second = sorted(sorted(side) for side in sides)
    return np.array(first, np.int64), np.array(second, np.int64)


def divide_by(weights: Floats, members: Ints) -> Division:
    """Return the two parts of `members` by the minimum cut of their weights."""
    first, second = minimum_cut(weights)
    return Division((members[first], members[second]), weights)
