"""What schedules and devices can be with (imports without torch)."""

from __future__ import annotations

from fedmpi.case.attacks import UpdateAttack
from fedmpi.case.privacy import NoPrivacy, Private
from fedmpi.case.reductions import ClippedOptions
from fedmpi.case.schema import Case, Misfits
from fedmpi.datasets.loading import num_datasets
from fedmpi.errors import BadInput
from fedmpi.partition.options import PopulationOptions
from fedmpi.registry.checks.reduction import in_host_memory


def misfits(case: Case) -> Misfits:
    """Yield the settings that a schedule, or a virtual clock, cannot have, and what to do."""
    kind = f'schedule "{case.schedule.name}"'
    if case.schedule.clocked and not (case.devices.clocked or case.schedule.real):
        yield "schedule", f'{kind} orders clients by their devices: set devices = "two-speed", or "equal"'
    if case.devices.clocked and isinstance(case.partition, PopulationOptions):
        text = 'partition "population" samples other clients each round, whose devices are not known'
        yield "devices", f'{text}: use "none"'
    if case.schedule.clocked and isinstance(case.privacy, Private):
        text = f'epsilon is not known where {kind} chooses by speed: use "synchronous"'
        yield "privacy", text
    if case.schedule.clocked and case.topology.gossips:
        text = f'{kind} is a server\'s, and topology "{case.topology.name}" has none'
        yield "schedule", f'{text}: use "synchronous"'
    if case.schedule.stale:
        yield from _stale(case, kind)
    if case.schedule.races:
        yield from _races(case)
    if case.schedule.real and case.record == "protocol":
        text = '"protocol" keeps no seconds of single clients, and the real clock imitates their devices'
        yield "record", f'{text}: use "full"'
    clients = case.partition.num_clients(num_datasets(case.dataset))
    if reason := case.schedule.misfit(clients, case.participation):
        yield "schedule", f'"{case.schedule.name}": {reason}'
    try:
        case.devices.make(case.seed, clients)
    except BadInput as error:
        yield "devices", str(error)


def _stale(case: Case, kind: str) -> Misfits:
    if isinstance(case.reduction, ClippedOptions):
        text = f"{kind} weighs updates by their age, and a public exponent needs weights with a sum of 1"
        yield "reduction", f'{text}: use "exact"'
    if case.reduction.dropouts.steps:
        yield "reduction.dropouts", f"{kind} waits for no client: remove the setting"
    yield from in_host_memory(case, f"{kind} keeps models")
    if case.down_compression.name != "none":
        text = f"changes need clients that have the model before, and {kind} gives each client its own"
        yield "down_compression", f'{text}: use "none"'
    if case.compression.pooled:
        text = f'"{case.compression.name}" takes its basis from updates that start together'
        yield "compression", f'{text}, and {kind} has others: use "top-k"'
    if case.schedule.mixes and case.compression.name != "none":
        text = f'{kind} averages models, and "{case.compression.name}" compresses updates'
        yield "compression", f'{text}: use schedule = {{ name = "buffered", size = 1 }}'


def _races(case: Case) -> Misfits:
    """Yield what cannot be where nobody waits: rank 0 only adds updates, and all ranks are at work."""
    if case.participation < 1:
        text = 'with schedule.clock = "real" as many clients are at work as ranks'
        yield "participation", f"{text}: use 1"
    if case.shared:
        yield "server", 'a server that trains keeps the others waiting on the real clock: use "dedicated"'
    if case.compression.name != "none":
        yield "compression", 'updates by the real clock travel as float32: use "none", or clock = "virtual"'
    if case.reduction.transport == "gloo":
        text = 'updates by the real clock are summed on rank 0 alone: use "mpi", or clock = "virtual"'
        yield "reduction.transport", text
    if isinstance(case.attack, UpdateAttack):
        yield "attack", 'attackers know the round, and the real clock has none: use clock = "virtual"'
    if not isinstance(case.privacy, NoPrivacy):
        yield "privacy", 'updates by the real clock are not clipped: use "none", or clock = "virtual"'
