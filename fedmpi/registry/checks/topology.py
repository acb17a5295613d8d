"""What a topology without a server can be with (imports without torch)."""

from __future__ import annotations

from fedmpi.case.attacks import UpdateAttack
from fedmpi.case.privacy import NoPrivacy
from fedmpi.case.schema import Case, Misfits
from fedmpi.datasets.loading import num_datasets
from fedmpi.errors import BadInput
from fedmpi.partition.options import PopulationOptions
from fedmpi.topologies.base import TopologyOptions
from fedmpi.topologies.mixing import refuse_unfit


def misfits(case: Case) -> Misfits:
    """Yield the settings that clients without a server cannot have, and what to do."""
    topology, kind = case.topology, f'topology "{case.topology.name}"'
    if not isinstance(topology, TopologyOptions):
        return
    yield from _of_a_server(case, kind)
    if case.weights != "equal":
        yield "weights", f'{kind} weighs clients by their neighbours, not by samples: use "equal"'
    if topology.directed and case.participation < 1:
        text = "where clients are away, links that go one way do not keep the mean"
        yield "participation", f'{kind}: {text}: use 1, or topology "ring"'
    if isinstance(case.partition, PopulationOptions):
        yield "partition", f'{kind} needs clients that stay: use "iid"'
    yield from _compression(case, topology)
    try:
        refuse_unfit(topology, case.partition.num_clients(num_datasets(case.dataset)), case.seed)
    except BadInput as error:
        yield "topology", f'"{topology.name}": {error}'


def _of_a_server(case: Case, kind: str) -> Misfits:
    """Yield settings of what a server does."""
    if case.reduction.name != "exact":
        yield "reduction", f'{kind} has no sum at a server: use "exact"'
    if case.reduction.dropouts.steps:
        yield "reduction.dropouts", f"{kind} has no server from which clients drop out: remove it"
    if case.reduction.transport != "mpi":
        yield "reduction.transport", f'{kind} has no sum at a server: use "mpi"'
    if case.reduction.buffers != "host":
        yield "reduction.buffers", f'{kind} exchanges models in host memory: use "host"'
    if case.down_compression.name != "none":
        yield "down_compression", f'{kind} has no way down: use "none", and `compression`'
    if isinstance(case.attack, UpdateAttack):
        yield "attack", f'attackers send updates to a server, and {kind} has none: use "label-flip"'
    if not isinstance(case.privacy, NoPrivacy):
        yield "privacy", f'{kind} shows clients each other\'s models: use "none"'


def _compression(case: Case, topology: TopologyOptions) -> Misfits:
    """Yield what compressed gossip cannot be."""
    options, kind = case.compression, f'"{case.compression.name}"'
    if options.name == "none":
        if topology.step != TopologyOptions.model_fields["step"].default:
            yield "topology.step", "is the step of compressed gossip: set `compression`, or remove it"
        return
    if options.pooled:
        yield "compression", f'{kind} takes its basis from the updates of all clients: use "top-k"'
    if not getattr(options, "approaches", True):
        text = f"{kind} as it is here gets further from a model than nothing, and compressed gossip diverges"
        yield "compression", f'{text}: use "top-k", scaled = false, or more levels'
    if getattr(options, "feedback", None) is not None:
        text = "what compression left out is in the next difference from the estimate"
        yield "compression.feedback", f"{text}: remove it"
    if topology.directed:
        text = f'compressed gossip needs links both ways, and those of "{case.topology.name}" go one way'
        yield "topology", f'{text}: use "ring" or "regular"'
