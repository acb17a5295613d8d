"""When each recorded round ended, for formats in which every line has a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.clock import seconds_of
from fedmpi.store.reader import Run


def round_ends(run: Run) -> npt.NDArray[np.float64]:
    """Return the end of each recorded round [R] in seconds since 1970: start of its life plus rounds."""
    ends = np.zeros(run.rounds_completed)
    for life, kept in run.kept_rounds():
        since = np.cumsum(life.measurements["round_seconds"])
        ends[kept + life.first_round] = seconds_of(life.started) + since[kept]
    return ends
