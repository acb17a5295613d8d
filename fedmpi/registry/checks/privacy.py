"""What clipping and differential privacy need (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities import RowAggregate, Splits, overrides
from fedmpi.case.attacks import UpdateAttack
from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import ClippedOptions
from fedmpi.case.schema import Case


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting of privacy that cannot be, and what to do; None where all fit."""
    return _clipping(algorithm, case) or _privacy(algorithm, case)


def _clipping(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    kind, name = case.privacy.name, algorithm.name
    if not isinstance(case.privacy, Clipped):
        return None
    if algorithm.pools or not algorithm.communicates:
        return "privacy", f'{name} sends no updates that "{kind}" could shorten: use "fedavg"'
    if algorithm.decides & {"groups", "means"}:
        return "privacy", f'{name} averages models, and "{kind}" shortens updates: use "fedavg"'
    if algorithm.sends:
        return "privacy", f'{name} sends a second vector, which "{kind}" does not shorten: use "fedavg"'
    if case.reduction.secret and isinstance(case.attack, UpdateAttack):
        return (
            "privacy",
            f'under "{case.reduction.name}" clients shorten their own updates, and an attacker would not: '
            'use reduction = "exact"',
        )
    return None


def _sees_more(algorithm: Algorithm) -> bool:
    """Return whether the server learns more than one noisy mean, or averages something else."""
    more = algorithm.sends or algorithm.numbers or algorithm.decides or overrides(type(algorithm), "messages")
    return bool(more) or isinstance(algorithm, Splits | RowAggregate)


def _privacy(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    privacy, name = case.privacy, algorithm.name
    if not isinstance(privacy, Private):
        return None
    if _sees_more(algorithm):
        return "privacy", f'{name} shows more of a client than the mean with noise: use "fedavg"'
    for hook in ("participants", "groups", "weights"):
        if getattr(type(algorithm), hook) is not getattr(Algorithm, hook):
            return "privacy", f"{name} has {hook} of its own, for which epsilon is not known"
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
