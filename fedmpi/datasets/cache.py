"""Prepared datasets on disk: one sealed folder of plain arrays each, which ranks map instead of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedmpi.datasets import sealed
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import SparseRows, Topology

_OPTIONAL = (
    "node_labels", "edge_attributes", "scaffolds", "places", "node_rows", "graph_classes", "parts", "clients",
    "weights",
)  # fmt: skip
_TOLD = ("name", "class_names", "label_widths", "task", "attribute_names", "refused", "client_names")
_SPARSE = ("attribute_ptr", "attribute_columns", "attribute_values")
"""Arrays of attributes that are `SparseRows`."""


class Facts(BaseModel):
    """Facts of a prepared dataset beside its arrays; see `RawGraphs`.

    Attributes
    ----------
    digest : str
        `fedmpi.datasets.raw.digest` of the content.
    source : str
        Where its files came from.
    remarks : tuple of str
        See `fedmpi.datasets.remarks`; of data of one's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    graphs: int = Field(ge=0)
    nodes: int = Field(ge=0)
    directed_edges: int = Field(ge=0)
    class_names: tuple[str, ...]
    label_widths: tuple[int, ...]
    task: Literal["classification", "multi-task", "regression"]
    attribute_names: tuple[str, ...]
    refused: tuple[str, ...]
    source: str
    attribute_width: int = Field(0, ge=0)
    client_names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def _arrays(raw: RawGraphs) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        "graph_ptr": raw.topology.graph_ptr,
        "row_ptr": raw.topology.row_ptr,
        "columns": raw.topology.columns,
        "labels": raw.labels,
    }
    optional = {name: getattr(raw, name) for name in _OPTIONAL}
    attributes = raw.node_attributes
    if isinstance(attributes, SparseRows):
        found = (attributes.row_ptr, attributes.columns, attributes.values)
        optional |= dict(zip(_SPARSE, found, strict=True))
    else:
        optional["node_attributes"] = attributes
    return {**arrays, **{name: array for name, array in optional.items() if array is not None}}


def facts_of(folder: Path) -> Facts | None:
    """Return the facts of a prepared dataset; None where it is absent, partial or of another format.

    The content of its arrays is not verified.
    """
    noted = sealed.facts(folder)
    return None if noted is None else _facts(noted)


def _facts(noted: Mapping[str, Any]) -> Facts | None:
    try:
        return Facts.model_validate(noted)
    except ValidationError:
        return None


def intact(folder: Path) -> bool:
    """Return whether a prepared dataset is there and its content fits its digests."""
    return facts_of(folder) is not None and sealed.intact(folder)


def save(raw: RawGraphs, folder: Path, source: str, remarks: Sequence[str] = ()) -> None:
    """Write a prepared dataset; see `fedmpi.datasets.sealed.write`.

    Raises
    ------
    BadInput
        The folder cannot be written.
    """
    sparse = isinstance(raw.node_attributes, SparseRows)
    facts = Facts(
        digest=digest(raw),
        graphs=raw.num_graphs,
        nodes=raw.topology.num_nodes,
        directed_edges=raw.topology.num_edges,
        source=source,
        attribute_width=raw.attribute_width if sparse else 0,
        remarks=tuple(remarks),
        **{name: getattr(raw, name) for name in _TOLD},
    )
    sealed.write(folder, _arrays(raw), facts.model_dump(exclude_defaults=True))


def load(folder: Path) -> RawGraphs:
    """Return a prepared dataset with its large arrays mapped from disk, read-only.

    Raises
    ------
    BadInput
        It is not there, or its content is not what was written.
    """
    content = sealed.read(folder)
    facts = None if content is None else _facts(content.facts)
    if content is None or facts is None:
        raise BadInput(f"there is no whole prepared dataset in {folder}")
    arrays = content.arrays
    others: dict[str, Any] = {name: getattr(facts, name) for name in _TOLD}
    others |= {name: arrays.get(name) for name in _OPTIONAL}
    return RawGraphs(
        topology=Topology(*(np.asarray(arrays[name]) for name in ("graph_ptr", "row_ptr", "columns"))),
        node_attributes=_attributes(arrays, facts),
        labels=arrays["labels"],
        **others,
    )


def _attributes(arrays: Mapping[str, npt.NDArray[Any]], facts: Facts) -> npt.NDArray[Any] | SparseRows | None:
    """Return the attributes of the nodes, as they were saved."""
    if _SPARSE[0] not in arrays:
        return arrays.get("node_attributes")
    row_ptr, columns, values = (np.asarray(arrays[name]) for name in _SPARSE)
    return SparseRows(row_ptr, columns, values, facts.attribute_width)
