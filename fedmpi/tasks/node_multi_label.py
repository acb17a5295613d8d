"""Several binary labels per node, some missing: as of graphs."""

from __future__ import annotations

from typing import ClassVar

from fedmpi.datasets.raw import ExampleKind
from fedmpi.tasks.multi_label import MultiLabel


class NodeMultiLabel(MultiLabel):
    """Binary cross-entropy and ROC-AUC over all clients' held-out nodes."""

    name: ClassVar[str] = "node-multi-label"
    of: ClassVar[ExampleKind] = "node"
    kernels: ClassVar[frozenset[str]] = frozenset({"csr", "reference"})
