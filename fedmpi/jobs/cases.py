"""The cases of a suite with their folders and what is recorded of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedmpi.config.suite import Suite
from fedmpi.datasets.names import members
from fedmpi.datasets.tables import SYNTHETIC
from fedmpi.engine.case import Case
from fedmpi.engine.folders import holds_run, refuse_other_config
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.store.reader import Run, load_run


@dataclass(frozen=True)
class Item:
    """A case, its folder, and what its record says.

    Attributes
    ----------
    number : int
        Its place in the suite, from 0.
    case : Case
    folder : Path
        Absolute.
    status : str
        That of `Run.status`, or "missing".
    reason : str
        The record's.
    rounds : int
        Rounds recorded.
    pace : float
        Median seconds of a recorded round; NaN where there is none.
    ranks : int
        Ranks of the last life; 0 where there is none.
    """

    number: int
    case: Case
    folder: Path
    status: str = "missing"
    reason: str = ""
    rounds: int = 0
    pace: float = math.nan
    ranks: int = 0

    @property
    def name(self) -> str:
        """Name of the case: that of its folder."""
        return self.case.name

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
    for number, checked in enumerate(check_suite(suite)):
        folder = (root / checked.case.name).absolute()
        items.append(_recorded(number, checked.case, folder))
    return items


def _recorded(number: int, case: Case, folder: Path) -> Item:
    if not holds_run(folder):
        return Item(number, case, folder)
    try:
        run = load_run(folder)
    except BadInput as error:
        return Item(number, case, folder, "damaged", str(error))  # rebuilt when the case goes on
    refuse_other_config(case, run.config, folder)
    ranks = run.lives[-1].ranks if run.lives else 0
    return Item(number, case, folder, run.status, run.reason, run.rounds_completed, pace(run), ranks)


def pace(run: Run) -> float:
    """Return the median seconds of the recorded rounds, the first of each life left out; NaN without any."""
    seconds = [
        life.measurements["round_seconds"][kept[kept > 0]] for life, kept in run.kept_rounds() if len(kept)
    ]
    values = np.concatenate([np.zeros(0), *seconds])
    return float(np.median(values)) if len(values) else math.nan


def num_clients(case: Case) -> int:
    """Return how many clients a case has, from its configuration alone."""
    if case.partition.name != "per-dataset":
        return case.partition.clients
    if case.dataset.name == SYNTHETIC:
        return case.dataset.synthetic.domains
    return len(members(case.dataset.name))


def datasets(items: Sequence[Item]) -> list[str]:
    """Return the datasets with files that cases need, each once."""
    found: dict[str, None] = {}
    for item in items:
        found.update(dict.fromkeys(members(item.case.dataset.name)))
    return list(found)
