"""The cases of a suite with their folders and what is recorded of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedmpi.case.folders import OtherVersion, holds_run, refuse_other_config
from fedmpi.case.schema import Case
from fedmpi.config import modes
from fedmpi.config.suite import Suite
from fedmpi.datasets.loading import num_datasets
from fedmpi.datasets.names import files_behind
from fedmpi.errors import BadInput
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import check_suite
from fedmpi.store.reader import Run, load_run

OTHER_VERSION = "other version"
"""Status of a case whose folder holds a run of another version of its plug-in."""


@dataclass(frozen=True)
class Item:
    """A case, its folder, and what its record says.

    Attributes
    ----------
    number : int
        Its place in the suite, from 0.
    on : int
        Ranks that the suite's mode runs it on; 0 where it has no mode.
    case : Case
    folder : Path
        Absolute.
    status : str
        That of `Run.status`, "missing", or `OTHER_VERSION`.
    reason : str
        The record's.
    rounds : int
        Rounds recorded.
    pace : float
        Median seconds of a recorded round; NaN where there is none.
    ranks : int
        Ranks of the last attempt; 0 where there is none.
    """

    number: int
    case: Case
    folder: Path
    on: int = 0
    status: str = "missing"
    reason: str = ""
    rounds: int = 0
    pace: float = math.nan
    ranks: int = 0

    @property
    def name(self) -> str:
        """Its folder below that of the suite."""
        return str(modes.place(Path(), self.on) / self.case.name)

    @property
    def done(self) -> bool:
        """Whether nothing is left to run."""
        return self.status == "complete"


def survey(suite: Suite, root: Path) -> list[Item]:
    """Check a suite and read what is recorded of its cases below `root`.

    Raises
    ------
    BadInput
        The suite is wrong, or a folder holds a run of another configuration.
    """
    items = []
    for checked in check_suite(suite):
        for on in checked.ranks or (0,):
            folder = (modes.place(root, on) / checked.case.name).absolute()
            items.append(_recorded(Item(checked.number, checked.case, folder, on)))
    return items


def _recorded(item: Item) -> Item:
    """Return the case with what its record says."""
    if not holds_run(item.folder):
        return item
    try:
        run = load_run(item.folder)
    except BadInput as error:
        return replace(item, status="damaged", reason=str(error))  # rebuilt when the case goes on
    try:
        refuse_other_config(item.case, run.config, item.folder)
    except OtherVersion as error:
        return replace(item, status=OTHER_VERSION, reason=str(error))
    return replace(
        item,
        status=run.status,
        reason=run.reason,
        rounds=run.rounds_completed,
        pace=pace(run),
        ranks=run.attempts[-1].ranks if run.attempts else 0,
    )


def pace(run: Run) -> float:
    """Return the median seconds of the rounds without the first of each attempt; NaN where none is left."""
    seconds = [
        attempt.measurements["round_seconds"][kept[kept > 0]]
        for attempt, kept in run.kept_rounds()
        if len(kept)
    ]
    values = np.concatenate([np.zeros(0), *seconds])
    median = float(np.median(values)) if len(values) else math.nan
    return median if 0 <= median < math.inf else math.nan


def num_clients(case: Case) -> int:
    """Return how many clients a case has, from its configuration alone; one where it pools their graphs."""
    if ALGORITHMS.find(case.algorithm.name).pools:
        return 1
    return case.partition.num_clients(num_datasets(case.dataset))


def most_ranks(case: Case) -> int:
    """Return how many ranks have work: one per client, and the server's own unless it hosts clients too."""
    return num_clients(case) + (not case.shared)


def datasets(items: Sequence[Item]) -> list[str]:
    """Return the datasets with files that cases need, each once."""
    return list(dict.fromkeys(name for item in items for name in files_behind(item.case.dataset.name)))
