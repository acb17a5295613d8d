"""Relation prediction: the class of an edge, cross-entropy, accuracy by client and F1 over all edges."""

from __future__ import annotations

from typing import ClassVar

from fedmpi.datasets.raw import ExampleKind
from fedmpi.tasks.node_classification import NodeClassification


class RelationPrediction(NodeClassification):
    """As of nodes; the model reads the product of both nodes' states."""

    name: ClassVar[str] = "relation-prediction"
    of: ClassVar[ExampleKind] = "edge"
    kernels: ClassVar[frozenset[str]] = frozenset({"csr", "reference"})
