"""What clients of a population cannot do: they keep nothing from round to round (imports without torch)."""

from __future__ import annotations

from fedmpi.case.attacks import NoAttack
from fedmpi.case.reductions import SecureOptions
from fedmpi.case.schema import Case, Misfits
from fedmpi.partition.options import PopulationOptions


def misfits(case: Case) -> Misfits:
    """Yield the settings that a population cannot have, and what to do."""
    kind = 'partition "population"'
    if not isinstance(case.partition, PopulationOptions):
        return
    if case.optimizer.state != "reset":
        yield "optimizer.state", f'{kind}: a client that is gone keeps no moments: use "reset"'
    if case.participation < 1:
        yield "participation", f"{kind}: partition.clients says how many are sampled: it must be 1"
    if not case.objective.supervised:
        yield "objective", f'{kind} is scored on held-out graphs: use "supervised"'
    if case.kernels == "grouped":
        yield "kernels", f'{kind}: "grouped" keeps the clients\' graphs together: use "compiled" or "csr"'
    if case.model.own_head:
        yield "model.head", f'{kind} needs one head for all: use "dataset"'
    if not isinstance(case.attack, NoAttack):
        yield "attack", f"{kind} has no clients that attack again: remove it"
    if isinstance(case.reduction, SecureOptions) and case.reduction.keys != "sum":
        yield "reduction.keys", f'{kind}: clients that are gone keep no keys: use "sum"'
