"""What a reduction can sum, and hide, of what an algorithm sends (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.reductions import ClippedOptions, LightSecAggOptions, SecAggPlusOptions, SecureOptions
from fedmpi.case.schema import Case, Misfits
from fedmpi.datasets.loading import num_datasets
from fedmpi.secure.neighbours import SECURITY_BITS, Degree, Risk, least_degree

MODELS_CLIP = 8.0
"""Least clip under which models are averaged; parameters are smaller, running variances seldom larger."""


def misfits(algorithm: Algorithm, case: Case) -> Misfits:
    """Yield the settings of the reduction that cannot be, and what to do."""
    reduction, kind = case.reduction, f'"{case.reduction.name}"'
    models = "groups" in algorithm.decides
    if isinstance(reduction, ClippedOptions) and models and reduction.clip < MODELS_CLIP:
        text = f"{algorithm.name} averages models, not updates, and {kind} cuts their elements"
        yield "reduction.clip", f"{text}: {MODELS_CLIP:g} or more"
    if isinstance(reduction, LightSecAggOptions) and reduction.colluders >= reduction.threshold:
        text = "it must be below the threshold: clients that do not collude lift the masks"
        yield "reduction.colluders", text
    if isinstance(reduction, SecureOptions):
        if reduction.server == "active" and reduction.threshold <= 2 / 3:
            text = "an active server could show two lists of survivors: it must be above 2/3, such as 0.7"
            yield "reduction.threshold", text
        if find_spec("cryptography") is None:
            yield "reduction", f"{kind} needs the extra secure: pip install 'fedmpi[secure]'"
    if reduction.transport == "nccl" and case.device != "cuda":
        yield "reduction.transport", '"nccl" sums between GPUs: use device = "cuda", or "gloo"'
    if late := [each.round for each in reduction.dropouts.schedule if each.round > case.rounds]:
        yield "reduction.dropouts", f"round {late[0]} of the schedule is behind the last, {case.rounds}"
    if isinstance(reduction, SecAggPlusOptions) and (reason := _thin_ring(algorithm, case, reduction)):
        yield "reduction.neighbours", reason


def in_host_memory(case: Case, why: str) -> Misfits:
    """Yield the settings that keep updates on a device, where they have to be in host memory."""
    if case.reduction.buffers == "device":
        yield "reduction.buffers", f'{why} in host memory: use "host"'
    if case.reduction.transport == "nccl":
        yield "reduction.transport", f'{why} in host memory: use "mpi"'


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
