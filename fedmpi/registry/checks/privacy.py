"""What clipping and differential privacy need (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.attacks import UpdateAttack
from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import ClippedOptions
from fedmpi.case.schema import Case


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting of privacy that cannot be, and what to do; None where all fit."""
    privacy = case.privacy
    if isinstance(privacy, Clipped) and case.reduction.secret and isinstance(case.attack, UpdateAttack):
        return (
            "privacy",
            f'under "{case.reduction.name}" clients shorten their own updates, and an attacker would not: '
            'use reduction = "exact"',
        )
    if not isinstance(privacy, Private):
        return None
    if case.weights != "equal":
        return "weights", f'"{privacy.name}" privacy bounds what each client adds: use weights = "equal"'
    if case.reduction.dropouts.steps:
        text = f'"{privacy.name}" privacy counts on every participant: remove the setting'
        return "reduction.dropouts", text
    if privacy.distributed and not isinstance(case.reduction, ClippedOptions):
        return (
            "reduction",
            f'"distributed" noise needs a sum of integers at a public exponent, not "{case.reduction.name}": '
            'use "fixed32", or a secure one',
        )
    if find_spec("dp_accounting") is None:
        return "privacy", f"\"{privacy.name}\" needs the extra privacy: pip install 'fedmpi[privacy]'"
    return None
