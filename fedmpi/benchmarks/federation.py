"""A case made ready in this process, as a run makes it, without record and checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation, assemble, deal, load
from fedmpi.client.groups import Group
from fedmpi.client.states import States
from fedmpi.client.warm_up import warm_up_anew
from fedmpi.comm.world import World
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.source import DataSource
from fedmpi.exchange.links import state_of
from fedmpi.partition.partition import Partition
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.registry.check import Checked
from fedmpi.runs.initial import read_initial
from fedmpi.runs.rounds import Rounds
from fedmpi.runs.signals import StopRequest


@dataclass(frozen=True)
class Prepared:
    """A case before its first round: data, partition, and the rounds of all its clients."""

    case: Case
    raws: tuple[RawGraphs, ...]
    partition: Partition
    federation: Federation
    rounds: Rounds

    @property
    def groups(self) -> Sequence[Group]:
        """The clients as their kernels take them: one by one or several at once."""
        return self.rounds.states.groups

    @property
    def device(self) -> torch.device:
        """Where the clients train."""
        return self.rounds.states.device

    def train(self, round: int, groups: Sequence[Group] | None = None) -> tuple[int, int]:
        """Train some groups' clients, or all, for a round; return the FLOPs by model and as executed."""
        case, rounds = self.case, self.rounds
        everybody = set(rounds.clients)
        return _flops(e.train(case, rounds.algorithm, round, everybody) for e in groups or self.groups)

    def evaluate(self, round: int, groups: Sequence[Group] | None = None) -> tuple[int, int]:
        """Evaluate some groups' clients on held-out graphs; return the FLOPs by model and as executed."""
        return _flops(each.evaluate(set(self.rounds.clients)) for each in groups or self.groups)


def _flops(started: Iterable[Callable[[], Mapping[int, Any]]]) -> tuple[int, int]:
    """Wait for what was started; return the FLOPs by model and as executed."""
    done = [each for wait in started for each in wait().values()]
    return sum(each.model_flops for each in done), sum(each.executed_flops for each in done)


def prepare(checked: Checked, source: DataSource, world: World) -> Prepared:
    """Load the case's data, deal it out and start its clients; sets torch's threads.

    Raises
    ------
    BadInput
        Data or partition cannot be used.
    """
    case = checked.case
    torch.set_num_threads(case.threads)
    with deterministic(True):
        warm_up_anew(case)
        source.prepare(case.dataset.name)
        raws = load(case, source)
        partition = deal(case, checked.algorithm, raws)
        federation = assemble(case, raws, partition, source.cache)
        hooks = Hooks(checked.algorithm, federation.num_clients, Position())
        initial = read_initial(case, federation)
        states = States(case, hooks, world, federation, state_of(case), initial)
        rounds = Rounds(case, hooks, world, federation, states)
        rounds.begin(None)
        rounds.prepare(federation, StopRequest())
    return Prepared(case, raws, partition, federation, rounds)


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Have torch choose deterministic algorithms (as a run does) or its defaults, inside the block only."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(wanted)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
