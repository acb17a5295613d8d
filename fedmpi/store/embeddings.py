"""Vectors of graphs beside a run's record: a file per round that was asked for."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.schema import Array

FOLDER = "embeddings"
_NAME = re.compile(r"round-(\d+)\.npz")
_AGAIN = "remove the run's folder and run the case again"


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
    target, content = folder / FOLDER / f"round-{round:04d}.npz", io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    try:
        disk.write_whole(target, content.getvalue(), durable=True)
    except OSError as error:
        raise disk.failure(target, error) from error


def load(folder: Path) -> dict[int, dict[str, Array]]:
    """Return what `save` wrote below a run's folder, by round (counted from 1), ascending.

    Raises
    ------
    BadInput
        A file is damaged.
    """
    by_round = {}
    for path in sorted((folder / FOLDER).glob("round-*.npz")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        try:
            with np.load(path, allow_pickle=False) as arrays:
                each = {name: arrays[name] for name in ("vectors", "labels")}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise BadInput(f"{path}: damaged ({error or 'empty'}); {_AGAIN}") from error
        vectors, labels = each["vectors"], each["labels"]
        if vectors.ndim != 2 or labels.shape != vectors.shape[:1] or not np.isfinite(vectors).all():
            raise BadInput(f"{path}: damaged (its vectors are not those of a run); {_AGAIN}")
        by_round[int(match[1])] = each
    return dict(sorted(by_round.items()))
