"""Which attacks a case can have (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.attacks import LabelFlip, NoAttack, UpdateAttack
from fedmpi.case.schema import Case
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.known import classifies


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the setting of the attack that cannot be, and what to do; None where it fits."""
    attack, name = case.attack, algorithm.name
    if isinstance(attack, NoAttack):
        return None
    if algorithm.pools or not algorithm.communicates:
        return "attack", f"{name} has no update that could be attacked: use an algorithm that shares, or none"
    if isinstance(attack, LabelFlip) and not _flippable(case):
        return "attack", '"label-flip" needs a supervised task of one class per graph or node'
    if isinstance(attack, UpdateAttack) and attack.from_round > case.rounds:
        return "attack.from_round", f"there is no round {attack.from_round}: rounds are 1 to {case.rounds}"
    if isinstance(attack, UpdateAttack) and "groups" in algorithm.decides and case.reduction.dropouts.steps:
        text = f"attackers start from their group's model, and {name} keeps none of a group whose sum is lost"
        return "reduction.dropouts", f"{text}: remove the setting"
    return None


def _flippable(case: Case) -> bool:
    if not case.objective.supervised:
        return False
    task = task_named(case.task, case.dataset.name)
    if task is None:
        return classifies(case.task, case.dataset.name)
    return task.labels == "classification" and task.of != "edge"
