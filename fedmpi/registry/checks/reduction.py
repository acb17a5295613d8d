"""What a reduction can sum, and hide, of what an algorithm sends (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.reductions import ClippedOptions, LightSecAggOptions, SecAggPlusOptions, SecureOptions
from fedmpi.case.schema import Case
from fedmpi.datasets.loading import num_datasets
from fedmpi.secure.neighbours import SECURITY_BITS, Degree, Risk, least_degree

MODELS_CLIP = 8.0
"""Least clip under which models are averaged; parameters are smaller, running variances seldom larger."""


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting of the reduction that cannot be, and what to do; None where all fit."""
    reduction = case.reduction
    if isinstance(reduction, ClippedOptions) and (wrong := _unclippable(algorithm, reduction)):
        return wrong
    if late := [each.round for each in reduction.dropouts.schedule if each.round > case.rounds]:
        return "reduction.dropouts", f"round {late[0]} of the schedule is behind the last, {case.rounds}"
    reason = _thin_ring(algorithm, case, reduction) if isinstance(reduction, SecAggPlusOptions) else ""
    return ("reduction.neighbours", reason) if reason else None


def _unclippable(algorithm: Algorithm, reduction: ClippedOptions) -> tuple[str, str] | None:
    """Refuse algorithms whose sums a clipped reduction cannot hold, or a secret one must not show."""
    name, kind = algorithm.name, f'"{reduction.name}"'
    if "groups" in algorithm.decides and reduction.clip < MODELS_CLIP:
        text = f"{name} averages models, not updates, and {kind} cuts their elements: {MODELS_CLIP:g} or more"
        return "reduction.clip", text
    return _unmasked(reduction) if isinstance(reduction, SecureOptions) else None


def _unmasked(reduction: SecureOptions) -> tuple[str, str] | None:
    """Refuse numbers of clients that a secure sum cannot hold."""
    if isinstance(reduction, LightSecAggOptions) and reduction.colluders >= reduction.threshold:
        text = "it must be below the threshold: clients that do not collude lift the masks"
        return "reduction.colluders", text
    if reduction.server == "active" and reduction.threshold <= 2 / 3:
        text = "an active server could show two lists of survivors: it must be above 2/3, such as 0.7"
        return "reduction.threshold", text
    if find_spec("cryptography") is None:
        return "reduction", f"\"{reduction.name}\" needs the extra secure: pip install 'fedmpi[secure]'"
    return None


def _thin_ring(algorithm: Algorithm, case: Case, reduction: SecAggPlusOptions) -> str:
    """Return why SecAgg+'s neighbours are too few for the colluders that a case allows, or nothing."""
    number = case.partition.num_clients(num_datasets(case.dataset))
    clients = len(algorithm.participants(case.seed, 0, number, case.participation))
    if not reduction.colluders or reduction.neighbours >= clients - 1:
        return ""
    gone = reduction.dropouts.share(clients)
    ring = Degree.of(reduction.neighbours, reduction.threshold)
    if Risk.of(clients, reduction.colluders, gone, ring).is_safe(SECURITY_BITS):
        return ""
    best = least_degree(clients, reduction.colluders, gone)
    instead = 'use "secagg"'
    if best is not None:
        threshold = (best.threshold - 0.5) / (best.neighbours + 1)
        instead = f"use neighbours = {best.neighbours} with threshold = {threshold:.3f}"
    return (
        f"{reduction.neighbours} of {clients - 1} with threshold = {reduction.threshold:g} are not safe if "
        f"{100 * reduction.colluders:g} % collude and {100 * gone:g} % drop out: {instead}"
    )
