"""What an algorithm can do beyond FedAvg: mix-ins, each with a few hooks (imports without torch).

A class gets a capability by deriving from it, before `Algorithm`:
``class Krum(RowAggregate, Algorithm)``. The engine calls a capability's hooks because the class
derives from it.
"""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities.base import KERNELS, ONE_BY_ONE, Capability, Reports
from fedmpi.algorithms.capabilities.mending import Mends
from fedmpi.algorithms.capabilities.server import (
    AGREEMENT,
    CLIENT_WEIGHTS,
    Division,
    RowAggregate,
    Splits,
)

__all__ = [
    "AGREEMENT",
    "CLIENT_WEIGHTS",
    "KERNELS",
    "ONE_BY_ONE",
    "Capability",
    "Division",
    "Mends",
    "Reports",
    "RowAggregate",
    "Splits",
    "capabilities_of",
    "hooks_of",
    "kernels_of",
    "overrides",
]


def capabilities_of(algorithm: type[Algorithm]) -> list[type[Capability]]:
    """Return the capabilities that an algorithm's class derives from."""
    kinds = [kind for kind in algorithm.__mro__ if issubclass(kind, Capability)]
    return [kind for kind in kinds if kind is not Capability and not issubclass(kind, Algorithm)]


def hooks_of(capability: type[Capability]) -> list[str]:
    """Return the names of a capability's hooks and flags."""
    return [name for name in vars(capability) if not name.startswith("_") and name != "runs_on"]


def overrides(algorithm: type[Algorithm], name: str) -> bool:
    """Return whether a class has a method of its own in place of `Algorithm`'s."""
    return getattr(algorithm, name) is not getattr(Algorithm, name)


def kernels_of(algorithm: type[Algorithm]) -> frozenset[str]:
    """Return the kernels that can run an algorithm: those that can do what all its capabilities need.

    Clients with a program of their own train one after another, and so do those that send more than updates.
    """
    own = ("train", "evaluated", "predict", "messages", "tells")
    more = algorithm.numbers or algorithm.decides & {"groups", "means"}
    alone = bool(more) or any(overrides(algorithm, name) for name in own)
    able = ONE_BY_ONE if alone else KERNELS
    return able.intersection(*(kind.runs_on for kind in capabilities_of(algorithm)))
