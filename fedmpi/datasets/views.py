"""Diffused views of datasets on disk: computed once for each dataset content and options."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np

from fedmpi.datasets.cache import scratch_name
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.errors import BadInput
from fedmpi.graphs.diffusion import DiffusionOptions, WeightedTopology, diffuse
from fedmpi.graphs.packed import Topology

_FORMAT = 1
_FOLDER = "diffusion"
_PARTS = ("row_ptr", "columns", "weights")


def view_of(raw: RawGraphs, options: DiffusionOptions, cache: Path) -> WeightedTopology:
    """Return the diffused view of a dataset, mapped from the cache, where it is put if it is not there yet.

    Raises
    ------
    BadInput
        The cache cannot be written.
    """
    folder = cache / _FOLDER / _name(raw, options)
    if not _complete(folder):
        _save(diffuse(raw.topology, options), folder)
    row_ptr, columns, weights = (np.load(folder / f"{part}.npy", mmap_mode="r") for part in _PARTS)
    return WeightedTopology(Topology(raw.topology.graph_ptr, row_ptr, columns), weights)


def _name(raw: RawGraphs, options: DiffusionOptions) -> str:
    state = hashlib.blake2b(f"{_FORMAT} {digest(raw)} {options.model_dump_json()}".encode(), digest_size=12)
    return f"{Path(raw.name).name}-{state.hexdigest()}"


def _complete(folder: Path) -> bool:
    return all((folder / f"{part}.npy").is_file() for part in _PARTS)


def _save(view: WeightedTopology, folder: Path) -> None:
    """Write a view; it appears under its name only when complete, and the first of two writers wins."""
    scratch = scratch_name(folder)
    try:
        scratch.mkdir(parents=True)
        np.save(scratch / "row_ptr.npy", view.topology.row_ptr)
        np.save(scratch / "columns.npy", view.topology.columns.astype(np.int32))
        np.save(scratch / "weights.npy", view.weights)
        try:
            scratch.rename(folder)
        except OSError:
            if not _complete(folder):
                raise
    except OSError as error:
        raise BadInput(
            f"cannot write the data cache {folder}: {error.strerror or error}; "
            "free the space or choose another place with FEDMPI_DATA"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
