"""What follows from the hooks and flags that an algorithm's class has (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm

KERNELS = frozenset({"compiled", "grouped", "csr", "reference"})


def overrides(algorithm: type[Algorithm], *names: str) -> bool:
    """Return whether a class has one of these methods of its own in place of `Algorithm`'s."""
    return any(getattr(algorithm, name) is not getattr(Algorithm, name) for name in names)


def kernels_of(algorithm: type[Algorithm]) -> frozenset[str]:
    """Return the kernels that can run an algorithm.

    Clients with a program of their own train one after another, and so do those that send more than updates.
    Outputs of models, and nodes that are added before round 1, are not for the compiled kernels.
    """
    own = overrides(algorithm, "train", "evaluated", "predict", "messages", "tells")
    alone = own or algorithm.numbers or algorithm.decides & {"groups", "mixes"}
    by_torch = algorithm.reads_outputs or overrides(algorithm, "prepare")
    return KERNELS - ({"grouped", "compiled"} if by_torch else {"grouped"} if alone else set())
