"""Vectors of graphs beside a run's record: a file per round that was asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.schema import Array

FOLDER = "embeddings"
_NAME = re.compile(r"round-(\d+)\.npz")


def save(folder: Path, round: int, arrays: Mapping[str, Array]) -> None:
    """Write the vectors after a round (counted from 1), complete or not at all.

    Parameters
    ----------
    folder : Path
        The run's.
    arrays : mapping
        ``vectors`` float32 [G, d], ``labels`` int64 [G].

    Raises
    ------
    RunFailed
        It could not be written (disk full).
    """
    target = folder / FOLDER / f"round-{round:04d}.npz"
    fresh = target.with_suffix(".tmp")
    try:
        target.parent.mkdir(exist_ok=True)
        with fresh.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
        os.replace(fresh, target)
    except OSError as error:
        raise disk.failure(target, error) from error


def load(folder: Path) -> dict[int, dict[str, Array]]:
    """Return what `save` wrote below a run's folder, by round (counted from 1), ascending.

    Raises
    ------
    BadInput
        A file is damaged.
    """
    found = {}
    for path in sorted((folder / FOLDER).glob("round-*.npz")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found[int(match[1])] = {name: arrays[name] for name in ("vectors", "labels")}
        except (OSError, ValueError, KeyError) as error:
            raise BadInput(f"{path}: damaged ({error}); delete it and run the case again") from error
    return dict(sorted(found.items()))
