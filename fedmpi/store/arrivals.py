"""The order of a run by the real clock, beside its record, so that its rounds can be computed again."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.schema import Array

NAME = "arrivals.npz"
_SHAPES = {"staleness": ("i4", 2), "seconds": ("f8", 1), "digests": ("u8", 1)}


def save(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Write the arrays of a `fedmpi.schedules.recorded.Order`, complete or not at all.

    Raises
    ------
    RunFailed
        It could not be written (disk full).
    """
    target, content = folder / NAME, io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    try:
        disk.write_whole(target, content.getvalue(), durable=True)
    except OSError as error:
        raise disk.failure(target, error) from error


def load(folder: Path, clients: int) -> dict[str, Array] | None:
    """Return what `save` wrote; None where there is nothing.

    Raises
    ------
    BadInput
        The file is damaged, or of another number of clients.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in _SHAPES}
    except Exception as error:  # whatever a damaged archive raises
        raise BadInput(f"{path} is damaged: remove the run's folder and run the case again") from error
    for name, (dtype, axes) in _SHAPES.items():
        if found[name].dtype != np.dtype(dtype) or found[name].ndim != axes:
            raise BadInput(f"{path} is damaged: remove the run's folder and run the case again")
    steps = {len(values) for values in found.values()}
    if len(steps) != 1 or found["staleness"].shape[1] != clients:
        raise BadInput(f"{path} is another run's: remove the run's folder and run the case again")
    return found
