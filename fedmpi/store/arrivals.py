"""The order of a run by the real clock, beside its record: its rounds are computed in it, and it goes on."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import disk

NAME = "arrivals.npz"
_STEPS = {"staleness": ("i4", 2), "seconds": ("f8", 1), "digests": ("u8", 1)}
_SHAPES = {**_STEPS, "ended": ("?", 0), "cpu_seconds": ("f8", 0)}
_ADVICE = "remove the run's folder and run the case again"


def save(folder: Path, order: Mapping[str, Any], case: str) -> None:
    """Write the attributes of a `fedmpi.schedules.recorded.Order`, complete or not at all.

    Parameters
    ----------
    folder : Path
        Of the run.
    order : mapping
    case : str
        Digest of the run's configuration.

    Raises
    ------
    RunFailed
        It could not be written (disk full).
    """
    target, content = folder / NAME, io.BytesIO()
    np.savez(content, case=np.array(case), **order)
    try:
        disk.write_whole(target, content.getvalue(), durable=True)
    except OSError as error:
        raise disk.failure(target, error) from error


def load(folder: Path, case: str, clients: int, least: int = 0) -> dict[str, Any] | None:
    """Return what `save` wrote; None where there is nothing and no step is needed.

    Parameters
    ----------
    folder, case
        As for `save`.
    clients, least : int
        Number of clients, and of steps at least.

    Raises
    ------
    BadInput
        The file is missing or damaged, of another case, or has too few steps.
    """
    path = folder / NAME
    if not path.exists():
        if least:
            raise BadInput(f"{path} is missing, without which the run cannot go on: {_ADVICE}")
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in _SHAPES}
            owner = str(stored["case"])
    except Exception as error:  # whatever a damaged archive raises
        raise BadInput(f"{path} is damaged: {_ADVICE}") from error
    for name, (dtype, axes) in _SHAPES.items():
        if found[name].dtype != np.dtype(dtype) or found[name].ndim != axes:
            raise BadInput(f"{path} is damaged: {_ADVICE}")
    steps = {len(found[name]) for name in _STEPS}
    if owner != case or len(steps) != 1 or found["staleness"].shape[1] != clients or min(steps) < least:
        raise BadInput(f"{path} is another run's: {_ADVICE}")
    return found | {name: found[name].item() for name in ("ended", "cpu_seconds")}
