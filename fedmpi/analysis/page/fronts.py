"""What runs spend, and which settings no other beats in score and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedmpi.analysis.page.cells import Cell, Line
from fedmpi.analysis.page.units import JOULES, MEGABYTES, SECONDS, Unit
from fedmpi.tables.table import NONE, Column


@dataclass(frozen=True)
class Cost:
    """What a run spends.

    Attributes
    ----------
    name : str
        In a run's summary.
    units : sequence of Unit
        In which people read it.
    title, meaning : str
    curve : str
        In a run's costs by round.
    """

    name: str
    units: Sequence[Unit]
    title: str
    meaning: str
    curve: str


TRAFFIC = Cost("client_megabytes", MEGABYTES, "traffic", "sent and received by all clients", "megabytes")
TIME = Cost("total_seconds", SECONDS, "time", "all rounds", "seconds")
VIRTUAL = Cost("virtual_seconds", SECONDS, "virtual time", "of the clients' devices", "virtual")
"""Of runs with a virtual clock."""
ENERGY = Cost("joules", JOULES, "energy", "processors, memory and GPUs of all nodes", "joules")
"""Of runs with counters."""


def clocked(cells: Sequence[Cell]) -> bool:
    """Return whether all runs have a virtual clock."""
    return all(VIRTUAL.curve in run.costs for cell in cells for run in cell.runs.values())


def front(cells: Sequence[Cell], cost: Cost) -> list[Cell]:
    """Return the cells that no other beats: none scores as well for less, or better for as much."""
    found = [(cell.mean(cost.name), cell.metric.sign * cell.score().mean, cell) for cell in cells]
    return [
        cell
        for spent, gained, cell in found
        if not math.isnan(spent + gained)
        and not any(
            other <= spent and better >= gained and (other, better) != (spent, gained)
            for other, better, _ in found
        )
    ]


def _fronts(line: Line) -> str:
    cells, cell = line[0].cells, line[1]
    if len(cells) == 1:
        return NONE
    costs = TRAFFIC, TIME, *[VIRTUAL] * clocked(cells)
    return ", ".join(cost.title for cost in costs if cell in front(cells, cost)) or "no"


ON_A_FRONT = Column[Line](
    "on a front", _fronts, "no other scores as well for less: traffic, time, virtual time", pasted=True
)
"""Of a setting with several cells; a dash for one alone."""
