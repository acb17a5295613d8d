"""Diffused views of datasets on disk: computed once for each dataset content and options."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.cache import publish, scratch_name
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.errors import BadInput
from fedmpi.graphs.diffusion import DiffusionOptions, WeightedTopology, diffuse
from fedmpi.graphs.packed import Topology

_FORMAT = 2
_FOLDER = "diffusion"
_PARTS = ("row_ptr", "columns", "weights")
_DIGEST = "digest"


def view_of(raw: RawGraphs, options: DiffusionOptions, cache: Path) -> WeightedTopology:
    """Return the diffused view of a dataset, mapped from the cache, where it is put if it is not there yet.

    What is there is believed only if its digest is right; else it is computed anew.

    Raises
    ------
    BadInput
        The cache cannot be written.
    """
    folder = cache / _FOLDER / _name(raw, options)
    parts = _load(folder)
    if parts is None:
        _save(diffuse(raw.topology, options), folder)
        parts = _load(folder)
    if parts is None:
        raise BadInput(f"{folder}: what was written there is read otherwise; choose another FEDMPI_DATA")
    row_ptr, columns, weights = parts
    return WeightedTopology(Topology(raw.topology.graph_ptr, row_ptr, columns), weights)


def _name(raw: RawGraphs, options: DiffusionOptions) -> str:
    state = hashlib.blake2b(f"{_FORMAT} {digest(raw)} {options.model_dump_json()}".encode(), digest_size=12)
    return f"{Path(raw.name).name}-{state.hexdigest()}"


def _load(folder: Path) -> list[npt.NDArray[Any]] | None:
    """Return the arrays of a view, mapped; None where one is missing or damaged."""
    try:
        parts = [np.load(folder / f"{part}.npy", mmap_mode="r", allow_pickle=False) for part in _PARTS]
        return parts if (folder / _DIGEST).read_text() == _digest(parts) else None
    except (OSError, ValueError, EOFError):
        return None


def _digest(parts: Sequence[npt.NDArray[Any]]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(f"{part.dtype} {part.shape}".encode())
        state.update(np.ascontiguousarray(part).data)
    return state.hexdigest()


def _save(view: WeightedTopology, folder: Path) -> None:
    """Write a view; it appears under its name only when complete, and the first of two writers wins."""
    scratch = scratch_name(folder)
    columns = view.topology.columns.astype(np.int32)
    parts: list[npt.NDArray[Any]] = [view.topology.row_ptr, columns, view.weights]
    try:
        scratch.mkdir(parents=True)
        for name, part in zip(_PARTS, parts, strict=True):
            np.save(scratch / f"{name}.npy", part)
        (scratch / _DIGEST).write_text(_digest(parts))
        publish(scratch, folder, lambda: _load(folder) is not None)
    except OSError as error:
        raise BadInput(
            f"cannot write the data cache {folder}: {error.strerror or error}; "
            "free the space or choose another place with FEDMPI_DATA"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
