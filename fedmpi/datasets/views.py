"""Diffused views of datasets on disk: computed once for each dataset content and options."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from fedmpi.datasets import sealed
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.graphs.diffusion import DiffusionOptions, WeightedTopology, diffuse
from fedmpi.graphs.packed import Topology

_FORMAT = 3
_FOLDER = "diffusion"


def view_of(raw: RawGraphs, options: DiffusionOptions, cache: Path) -> WeightedTopology:
    """Return the diffused view of a dataset, mapped from the cache, where it is put if it is not there yet.

    A view in the cache is used only if it is intact; else it is computed anew.

    Raises
    ------
    BadInput
        The cache cannot be written.
    """
    folder = cache / _FOLDER / _name(raw, options)
    content = sealed.read(folder)
    if content is None:
        _save(diffuse(raw.topology, options), folder)
        content = sealed.read(folder)
        assert content is not None  # it was written just now
    parts = content.arrays
    topology = Topology(raw.topology.graph_ptr, parts["row_ptr"], parts["columns"])
    return WeightedTopology(topology, parts["weights"])


def _name(raw: RawGraphs, options: DiffusionOptions) -> str:
    state = hashlib.blake2b(f"{_FORMAT} {digest(raw)} {options.model_dump_json()}".encode(), digest_size=12)
    return f"{Path(raw.name).name}-{state.hexdigest()}"


def _save(view: WeightedTopology, folder: Path) -> None:
    columns = view.topology.columns.astype(np.int32)
    sealed.write(folder, {"row_ptr": view.topology.row_ptr, "columns": columns, "weights": view.weights}, {})
