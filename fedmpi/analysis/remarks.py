"""What a reader of results should know of the algorithms behind them, as their records say."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from fedmpi.analysis.cells import Config, grouped
from fedmpi.analysis.names import algorithm_name
from fedmpi.analysis.page.cells import Cell
from fedmpi.analysis.summary import setting
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.store.schema import preparation_seconds


def remarks(runs: Iterable[tuple[Config, Mapping[str, Any]]]) -> list[str]:
    """Return lines, each once, about runs given by configuration and provenance."""
    found: dict[str, None] = {}
    for name, members in grouped(runs, lambda run: algorithm_name(str(setting(run[0], "algorithm")))).items():
        for _, provenance in members:
            found |= dict.fromkeys(f"{name}: {text}" for text in provenance.get("remarks", ()))
        known = (preparation_seconds(provenance) for _, provenance in members)
        if seconds := [each for each in known if each is not None]:
            spent = f"That took {statistics.median(seconds):.0f} s (median); s/round does not count it"
            found[f"{name}: clients work together before round 1. {spent}"] = None
    return list(found)


def never_split(cell: Cell) -> bool:
    """Return whether a cell's groups could split and did not: all clients are one group."""
    name = cell.algorithm
    could = name in ALGORITHMS and "splits" in ALGORITHMS[name].decides
    return could and cell.mean("splits") == 0


def unsplit(cells: Iterable[Cell]) -> list[str]:
    """Return a line for each cell whose groups never split."""
    return [
        f"{cell.label}: its groups never split, so all clients are one" for cell in cells if never_split(cell)
    ]
