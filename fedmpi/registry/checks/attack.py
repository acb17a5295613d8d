"""Which attacks a case can have (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.attacks import LabelFlip, NoAttack, UpdateAttack
from fedmpi.case.schema import Case
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.known import classifies


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the setting of the attack that cannot be, and what to do; None where it fits."""
    attack = case.attack
    if isinstance(attack, NoAttack):
        return None
    if isinstance(attack, LabelFlip) and not _flippable(case):
        return "attack", '"label-flip" needs a supervised task of one class per graph or node'
    if isinstance(attack, UpdateAttack) and attack.from_round > case.rounds:
        return "attack.from_round", f"there is no round {attack.from_round}: rounds are 1 to {case.rounds}"
    return None


def _flippable(case: Case) -> bool:
    if not case.objective.supervised:
        return False
    task = task_named(case.task, case.dataset.name)
    if task is None:
        return classifies(case.task, case.dataset.name)
    return task.labels == "classification" and task.of != "edge"
