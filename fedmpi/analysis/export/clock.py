"""When each recorded round ended, for formats in which every line has a time."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt

from fedmpi.store.reader import Run


def seconds_of(stamp: str) -> float:
    """Return a UTC stamp of the record as seconds since 1970."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def round_ends(run: Run) -> npt.NDArray[np.float64]:
    """Return the end of each recorded round [R] in seconds since 1970: start of its attempt plus rounds."""
    ends = np.zeros(run.rounds_completed)
    for attempt, kept in run.kept_rounds():
        since = np.cumsum(attempt.measurements["round_seconds"])
        ends[kept + attempt.first_round] = seconds_of(attempt.started) + since[kept]
    return ends
