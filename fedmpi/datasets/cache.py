"""Prepared datasets on disk: one folder of plain arrays each, which ranks map instead of reading."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Topology

FORMAT = 1
_META = "meta.json"
_SMALL_BYTES = 1 << 16


def _arrays(raw: RawGraphs) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        "graph_ptr": raw.topology.graph_ptr,
        "row_ptr": raw.topology.row_ptr,
        "columns": raw.topology.columns,
        "labels": raw.labels,
    }
    if raw.node_labels is not None:
        arrays["node_labels"] = raw.node_labels
    for key in ("node_attributes", "edge_attributes", "scaffolds"):
        if (array := getattr(raw, key)) is not None:
            arrays[key] = array
    return arrays


def scratch_name(target: Path) -> Path:
    """Return a fresh hidden name beside `target`, on the same file system."""
    return target.parent / f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}"


def read_meta(folder: Path) -> dict[str, Any] | None:
    """Return what is noted of a prepared dataset; None where it is absent, partial or of another format."""
    try:
        meta: dict[str, Any] = json.loads((folder / _META).read_text())
        if meta["format"] != FORMAT:
            return None
        for file, size in meta["files"].items():
            if (folder / file).stat().st_size != size:
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return meta


def save(raw: RawGraphs, folder: Path, source: str) -> None:
    """Write a prepared dataset; it appears under its name only when complete.

    Two processes may save the same dataset at once: the first to finish wins, the other's copy
    is dropped.

    Raises
    ------
    BadInput
        The folder cannot be written.
    """
    scratch = scratch_name(folder)
    try:
        scratch.mkdir(parents=True)
        _write(raw, scratch, source)
        publish(scratch, folder, lambda: read_meta(folder) is not None)
    except OSError as error:
        raise BadInput(
            f"cannot write the data cache {folder}: {error.strerror or error}; "
            "free the space or choose another place with FEDMPI_DATA"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(raw: RawGraphs, folder: Path, source: str) -> None:
    files = {}
    for key, array in _arrays(raw).items():
        path = folder / f"{key}.npy"
        np.save(path, array)
        files[path.name] = path.stat().st_size
    meta = {
        "format": FORMAT,
        "name": raw.name,
        "digest": digest(raw),
        "graphs": raw.num_graphs,
        "nodes": raw.topology.num_nodes,
        "directed_edges": raw.topology.num_edges,
        "class_names": raw.class_names,
        "label_widths": raw.label_widths,
        "task": raw.task,
        "attribute_names": raw.attribute_names,
        "refused": raw.refused,
        "source": source,
        "files": files,
    }
    (folder / _META).write_text(json.dumps(meta, indent=1))


def publish(scratch: Path, folder: Path, complete: Callable[[], bool]) -> None:
    """Rename a complete folder into place, unless what is there already is `complete`; else that makes room.

    Raises
    ------
    OSError
        It cannot be renamed, and no other process has put a complete one there.
    """
    try:
        scratch.rename(folder)
        return
    except OSError:
        if complete():
            return
        if not folder.exists():
            raise
    old = scratch_name(folder)
    try:
        folder.rename(old)  # partial, damaged, or of an older format
        scratch.rename(folder)
    except OSError:
        if not complete():
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def load(folder: Path) -> RawGraphs:
    """Return a prepared dataset with its large arrays mapped from disk, read-only.

    Raises
    ------
    BadInput
        Not prepared, or an array is damaged.
    """
    meta = read_meta(folder)
    if meta is None:
        raise BadInput(f"no prepared dataset in {folder}: run 'fedmpi data fetch'")

    def array(key: str) -> npt.NDArray[Any] | None:
        path = folder / f"{key}.npy"
        if path.name not in meta["files"]:
            return None
        large = meta["files"][path.name] > _SMALL_BYTES
        return np.asarray(np.load(path, mmap_mode="r" if large else None, allow_pickle=False))

    try:
        graph_ptr, row_ptr, columns, labels = (
            array(key) for key in ("graph_ptr", "row_ptr", "columns", "labels")
        )
        attributes = array("node_attributes")
        node_labels = array("node_labels")
        edge_attributes, scaffolds = array("edge_attributes"), array("scaffolds")
    except (OSError, ValueError) as error:
        raise BadInput(f"the prepared dataset in {folder} is damaged: {error}; delete the folder") from error
    assert graph_ptr is not None and row_ptr is not None and columns is not None and labels is not None
    return RawGraphs(
        str(meta["name"]),
        Topology(graph_ptr, row_ptr, columns),
        node_labels,
        tuple(meta["label_widths"]),
        attributes,
        labels,
        tuple(meta["class_names"]),
        meta.get("task", "classification"),
        tuple(meta.get("attribute_names", ())),
        edge_attributes,
        scaffolds,
        tuple(meta.get("refused", ())),
    )
