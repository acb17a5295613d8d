"""From cases and a system to batches: cases on so many ranks and nodes, in so many tasks, how long."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedmpi.errors import BadInput
from fedmpi.jobs.cases import Item, most_ranks
from fedmpi.jobs.estimate import Estimate, Paces
from fedmpi.jobs.systems import System

_SLACK = 1.5
"""A task asks for so many times its estimated seconds."""
_WORTH_S = 600
"""Seconds that a task should have to do, so that short cases share one."""
_EXTRA_MINUTES = 5
"""And so many minutes more: data that are staged, a queue of files, a slow start."""


@dataclass(frozen=True)
class Wishes:
    """What the user asks for instead of the defaults; None leaves the choice to the plan."""

    ranks: int | None = None
    tasks: int | None = None
    at_once: int | None = None
    minutes: int | None = None


@dataclass(frozen=True)
class Batch:
    """Cases that run on the same ranks: one array of tasks.

    Task t of T runs the cases t, t + T, t + 2 T, ... of `items`, in this order.

    Attributes
    ----------
    items : tuple of Item
    estimates : tuple of Estimate
        One for each item.
    ranks, threads : int
        Ranks of a case, threads of a rank.
    nodes, gpus : int
        Nodes of a case, GPUs asked for on each of them.
    tasks, at_once : int
    minutes : int
        Time limit of a task.
    """

    items: tuple[Item, ...]
    estimates: tuple[Estimate, ...]
    ranks: int
    threads: int
    nodes: int
    gpus: int
    tasks: int
    at_once: int
    minutes: int

    def task_seconds(self) -> list[float]:
        """Return the estimated seconds of each task; NaN where one of its cases is unknown."""
        seconds = [estimate.seconds for estimate in self.estimates]
        return [sum(seconds[task :: self.tasks]) for task in range(self.tasks)]

    def end_seconds(self) -> float:
        """Return when the last task ends, `at_once` at a time and in order; NaN where one is unknown."""
        free_at = [0.0] * self.at_once
        for seconds in self.task_seconds():
            if math.isnan(seconds):
                return math.nan
            heapq.heapreplace(free_at, free_at[0] + seconds)
        return max(free_at)

    def idle(self) -> list[Item]:
        """Return the cases of which some ranks have no work."""
        return [item for item in self.items if self.ranks > most_ranks(item.case)]

    def known_seconds(self) -> float:
        """Return the estimated seconds of all cases of which they are known."""
        return sum(each.seconds for each in self.estimates if not math.isnan(each.seconds))


@dataclass(frozen=True)
class Plan:
    """All that is left of a suite, in batches; `done` counts the complete cases."""

    batches: tuple[Batch, ...]
    done: int
    total: int


def make(items: Sequence[Item], system: System, paces: Paces, wishes: Wishes) -> Plan:
    """Plan what is left of a suite; of one with a mode, wished ranks choose the cases for that number.

    Parameters
    ----------
    items : sequence of Item
        All cases of the suite.
    system : System
        Nodes and limits.
    paces : Paces
        Recorded runs, from which times are estimated.
    wishes : Wishes
        Resources that the user asks for; they take the place of planned ones.

    Raises
    ------
    BadInput
        More is asked for than the system's limits allow.
    """
    shapes: dict[tuple[int, int, bool], list[Item]] = {}
    items = [item for item in items if not (item.on and wishes.ranks) or item.on == wishes.ranks]
    left = [item for item in items if not item.done]
    for item in left:
        threads = item.case.threads
        most = max(1, system.node.cores // threads)
        ranks = item.on or wishes.ranks or min(most_ranks(item.case), most)
        shapes.setdefault((ranks, threads, item.case.device == "cuda"), []).append(item)
    batches = tuple(_batch(each, *shape, system, paces, wishes) for shape, each in shapes.items())
    return Plan(batches, len(items) - len(left), len(items))


def _batch(
    items: Sequence[Item], ranks: int, threads: int, cuda: bool, system: System, paces: Paces, wishes: Wishes
) -> Batch:
    nodes = math.ceil(ranks / max(1, system.node.cores // threads))
    estimates = tuple(paces.estimate(item, ranks, system.model) for item in items)
    at_once = wishes.at_once or system.limits.at_once
    if not wishes.at_once and system.launch.scheduler == "none":  # what the cores of one machine bear
        at_once = max(1, min(at_once, system.node.cores // (ranks * threads)))
    tasks = min(wishes.tasks or _tasks(estimates, at_once, system), len(items))
    gpus = min(system.node.gpus, math.ceil(ranks / nodes)) if cuda else 0
    shape = (ranks, threads, nodes, gpus, tasks, min(at_once, tasks))
    batch = Batch(tuple(items), estimates, *shape, minutes=wishes.minutes or 0)
    batch = replace(batch, minutes=batch.minutes or _minutes(batch, system))
    _check(batch, cuda, system)
    return batch


def _tasks(estimates: Sequence[Estimate], at_once: int, system: System) -> int:
    """Return how many tasks an array has: each is worth its wait in the queue, or one per case."""
    total = sum(estimate.seconds for estimate in estimates)
    worth = system.limits.tasks if math.isnan(total) else math.ceil(total / _WORTH_S)
    return min(system.limits.tasks, max(worth, at_once))


def _minutes(batch: Batch, system: System) -> int:
    """Return the time limit: the longest task with slack, the system's longest where a time is unknown."""
    longest = max(batch.task_seconds(), key=lambda seconds: math.inf if math.isnan(seconds) else seconds)
    if math.isnan(longest):
        return system.limits.minutes
    return min(system.limits.minutes, math.ceil(_SLACK * longest / 60) + _EXTRA_MINUTES)


def _check(batch: Batch, cuda: bool, system: System) -> None:
    limits, cores, attempts = system.limits, system.node.cores, system.limits.requeues + 1
    known = [seconds for seconds in batch.task_seconds() if not math.isnan(seconds)]
    longest = max(known, default=0.0) / 60
    if batch.threads > cores:
        raise BadInput(f"threads = {batch.threads}, but a node of this system has {cores} cores")
    if cuda and not system.node.gpus:
        raise BadInput('device = "cuda", but this system has no GPUs (node.gpus): choose another --system')
    if batch.nodes > limits.nodes:
        raise BadInput(
            f"{batch.ranks} ranks x {batch.threads} threads take {batch.nodes} nodes of {cores} cores, the "
            f"system allows {limits.nodes} (limits.nodes): give fewer by --ranks"
        )
    if batch.minutes > limits.minutes:
        allowed = f"the system allows {limits.minutes} (limits.minutes)"
        raise BadInput(
            f"--minutes {batch.minutes}: {allowed}; a task that runs out of time is continued by itself"
        )
    if batch.tasks > limits.tasks:
        allowed = f"arrays of {limits.tasks} tasks (limits.tasks)"
        raise BadInput(f"--tasks {batch.tasks}: the system allows {allowed}")
    if longest > attempts * batch.minutes:  # it would not end within all the attempts that it may have
        raise BadInput(
            f"a task takes about {longest:.0f} minutes, longer than {attempts} attempts of {batch.minutes} "
            "minutes (limits.requeues): give more --tasks, more --ranks or a longer limit"
        )
