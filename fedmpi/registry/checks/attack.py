"""Which attacks a case can have (imports without torch)."""

from __future__ import annotations

from fedmpi.case.attacks import LabelFlip, UpdateAttack
from fedmpi.case.schema import Case, Misfits
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.known import classifies


def misfits(case: Case) -> Misfits:
    """Yield the settings of the attack that cannot be, and what to do."""
    attack = case.attack
    if isinstance(attack, LabelFlip) and not _flippable(case):
        yield "attack", '"label-flip" needs a supervised task of one class per graph or node'
    if isinstance(attack, UpdateAttack) and attack.from_round > case.rounds:
        yield "attack.from_round", f"there is no round {attack.from_round}: rounds are 1 to {case.rounds}"


def _flippable(case: Case) -> bool:
    task, supervised = task_named(case.task, case.dataset.name), case.objective.supervised
    if task is None:
        return supervised and classifies(case.task, case.dataset.name)
    return supervised and task.labels == "classification" and task.of != "edge"
