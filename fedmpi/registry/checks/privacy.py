"""What clipping and differential privacy need (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.case.attacks import UpdateAttack
from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import ClippedOptions
from fedmpi.case.schema import Case, Misfits


def misfits(case: Case) -> Misfits:
    """Yield the settings that privacy cannot have, and what to do."""
    privacy, sums = case.privacy, f'"{case.reduction.name}"'
    if isinstance(privacy, Clipped) and case.reduction.secret and isinstance(case.attack, UpdateAttack):
        text = f"under {sums} clients shorten their own updates, and an attacker would not"
        yield "privacy", f'{text}: use reduction = "exact"'
    if not isinstance(privacy, Private):
        return
    if case.weights != "equal":
        yield "weights", f'"{privacy.name}" privacy bounds what each client adds: use weights = "equal"'
    if case.reduction.dropouts.steps:
        text = f'"{privacy.name}" privacy counts on every participant: remove the setting'
        yield "reduction.dropouts", text
    if privacy.distributed and not isinstance(case.reduction, ClippedOptions):
        text = f'"distributed" noise needs a sum of integers at a public exponent, not {sums}'
        yield "reduction", f'{text}: use "fixed32", or a secure one'
    if find_spec("dp_accounting") is None:
        yield "privacy", f"\"{privacy.name}\" needs the extra privacy: pip install 'fedmpi[privacy]'"
