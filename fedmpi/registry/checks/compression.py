"""What compressed updates can be with (imports without torch)."""

from __future__ import annotations

from fedmpi.case.privacy import Private
from fedmpi.case.schema import Case, Misfits
from fedmpi.partition.options import PopulationOptions
from fedmpi.registry.checks.reduction import in_host_memory


def misfits(case: Case) -> Misfits:
    """Yield the settings that compression cannot have, and what to do."""
    yield from _down(case)
    options = case.compression
    kind, sums = f'"{options.name}"', f'"{case.reduction.name}"'
    if options.name == "none":
        return
    if case.reduction.secret and not options.linear:
        text = f'{sums} adds what it must not see, and updates by {kind} cannot be added: use "random-k"'
        yield "compression", text
    yield from in_host_memory(case, f"{kind} compresses")
    if case.reduction.transport == "gloo" and not options.linear:
        yield "reduction.transport", f'updates by {kind} travel one by one and have no sum: use "mpi"'
    if isinstance(case.partition, PopulationOptions) and (options.residual or options.pooled):
        text = f'{kind} needs clients that stay, partition "population" samples others each round'
        yield "compression", f'{text}: use feedback = false, and not "powersgd"'
    if isinstance(case.privacy, Private):
        if case.privacy.distributed and not options.linear:
            text = f'"distributed" privacy adds noise to sums, and updates by {kind} travel one by one'
            yield "compression", f'{text}: use "random-k" with scaled = false, or privacy "central"'
        if options.residual:
            text = "what compression left out goes with a later update, whose length is then not bounded"
            yield "compression.feedback", f"{text}: use feedback = false"
        if options.pooled or not options.contracts:
            text = f"{kind} may lengthen an update, and privacy needs the bound that clipping gives it"
            yield "compression", f'{text}: use "top-k", "sign", or "random-k" with scaled = false'


def _down(case: Case) -> Misfits:
    options, kind = case.down_compression, f'"{case.down_compression.name}"'
    if options.name == "none":
        return
    if options.pooled:
        yield "down_compression", f'{kind} takes its basis from the updates of all clients: use "top-k"'
    yield from in_host_memory(case, f"{kind} compresses")
    if isinstance(case.partition, PopulationOptions):
        text = 'changes need clients that have the model before, and partition "population" samples others'
        yield "down_compression", f'{text} each round: use "none"'
