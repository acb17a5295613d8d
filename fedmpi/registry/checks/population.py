"""What clients of a population cannot do: they keep nothing from round to round (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.attacks import NoAttack
from fedmpi.case.reductions import SecureOptions
from fedmpi.case.schema import Case
from fedmpi.partition.options import PopulationOptions


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting that a population cannot have, and what to do; None where all fit."""
    kind = 'partition "population"'
    if not isinstance(case.partition, PopulationOptions):
        return None
    if case.optimizer.state != "reset":
        return "optimizer.state", f'{kind}: a client that is gone keeps no moments: use "reset"'
    if case.participation < 1:
        return "participation", f"{kind}: partition.clients says how many are sampled: it must be 1"
    if not case.objective.supervised:
        return "objective", f'{kind} is scored on held-out graphs: use "supervised"'
    if case.kernels == "grouped":
        return "kernels", f'{kind}: "grouped" keeps the clients\' graphs together: use "compiled" or "csr"'
    if case.model.own_head:
        return "model.head", f'{kind} needs one head for all: use "dataset"'
    if not isinstance(case.attack, NoAttack):
        return "attack", f"{kind} has no clients that attack again: remove it"
    if isinstance(case.reduction, SecureOptions) and case.reduction.keys != "sum":
        return "reduction.keys", f'{kind}: clients that are gone keep no keys: use "sum"'
    return None
