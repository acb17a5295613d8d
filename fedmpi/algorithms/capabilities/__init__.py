"""What an algorithm can do beyond FedAvg: mix-ins, each with a few hooks (imports without torch).

A class gets a capability by deriving from it, before `Algorithm`:
``class Krum(RowAggregate, Algorithm)``. The engine calls a capability's hooks because the class
derives from it.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities.base import KERNELS, ONE_BY_ONE, Bytes, Capability, Reports
from fedmpi.algorithms.capabilities.mending import Mends
from fedmpi.algorithms.capabilities.server import (
    AGREEMENT,
    CLIENT_WEIGHTS,
    RECEIVED_LOSS,
    Division,
    NodeOutputs,
    PersonalAggregates,
    Prototypes,
    Records,
    Regroups,
    RoundWeights,
    RowAggregate,
    ServerState,
    Splits,
    Trained,
    WeightsFromLosses,
    WeightsFromReports,
)

__all__ = [
    "AGREEMENT",
    "CLIENT_WEIGHTS",
    "CONFLICTS",
    "KERNELS",
    "ONE_BY_ONE",
    "RECEIVED_LOSS",
    "Bytes",
    "Capability",
    "Division",
    "Mends",
    "NodeOutputs",
    "PersonalAggregates",
    "Prototypes",
    "Records",
    "Regroups",
    "Reports",
    "RoundWeights",
    "RowAggregate",
    "ServerState",
    "Splits",
    "Trained",
    "WeightsFromLosses",
    "WeightsFromReports",
    "capabilities_of",
    "hooks_of",
    "kernels_of",
]

CONFLICTS: tuple[tuple[type[Capability], type[Capability], str], ...] = (
    (Regroups, Prototypes, "a client has one report"),
    (Regroups, Splits, "groups are formed anew in every round or split, not both"),
    (Regroups, WeightsFromReports, "regrouping averages models, these weights are for updates"),
    (Splits, WeightsFromReports, "a split is decided by whole-number weights"),
    (RowAggregate, WeightsFromReports, "nothing is weighted where rows take the place of the mean"),
    (PersonalAggregates, Prototypes, "a client has one report"),
    (PersonalAggregates, Regroups, "a client has one report"),
    (PersonalAggregates, Splits, "every client is a group of its own"),
    (PersonalAggregates, WeightsFromReports, "every client has weights of its own"),
    (PersonalAggregates, RowAggregate, "every client has a mean of its own"),
)
"""Capabilities that no class may combine, and why."""


def capabilities_of(algorithm: type[Algorithm]) -> list[type[Capability]]:
    """Return the capabilities that an algorithm's class derives from."""
    kinds = [kind for kind in algorithm.__mro__ if issubclass(kind, Capability)]
    return [kind for kind in kinds if kind is not Capability and not issubclass(kind, Algorithm)]


def hooks_of(capability: type[Capability]) -> list[str]:
    """Return the names of a capability's hooks and flags."""
    return [name for name in vars(capability) if not name.startswith("_") and name != "runs_on"]


def kernels_of(algorithm: type[Algorithm]) -> frozenset[str]:
    """Return the kernels that can run an algorithm: those that can do what all its capabilities need.

    Clients with a program of their own train one after another, and so do those that send more vectors.
    """
    own = algorithm.train is not Algorithm.train or algorithm.evaluated is not Algorithm.evaluated
    able = ONE_BY_ONE if own or algorithm.sends else KERNELS
    return able.intersection(*(kind.runs_on for kind in capabilities_of(algorithm)))
