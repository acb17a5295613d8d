"""A client before round 1: the verbs of `fedmpi.algorithms.program.Preparing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.program import Offer
from fedmpi.client.optimizer import adam_steps
from fedmpi.graphs.mended import Generated
from fedmpi.graphs.packed import GraphSet
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach

Ints = npt.NDArray[np.int64]


class Preparing:
    """A client before round 1.

    Parameters
    ----------
    id, seed, classes, graphs, device
        See `program.Preparing`.
    proceed : callable
        Raises where the run is asked to stop.

    Attributes
    ----------
    added : Generated or None
        Nodes that the program added.
    flops : int
        That it counted.
    """

    def __init__(
        self,
        id: int,
        seed: int,
        classes: int,
        graphs: GraphSet,
        device: torch.device | str,
        proceed: Callable[[], None],
    ) -> None:
        self.id, self.seed, self.classes, self.graphs, self.device = id, seed, classes, graphs, device
        self.proceed = proceed
        self.added: Generated | None = None
        self.flops = 0
        self._counted = -1
        self._shown: list[tuple[int, ...]] = []

    def count(self, number: int) -> Offer:
        """See `program.Preparing`."""
        self._counted = checks.length(number)
        return Offer("count", self._counted)

    def show(self, rows: Any) -> Offer:
        """See `program.Preparing`."""
        if self._counted < 0:
            raise Breach("shows rows: call client.count first, with how many")
        width = rows.shape[-1] if getattr(rows, "ndim", 0) == 2 else 1
        return Offer("show", checks.rows(rows, (self._counted, width)))

    def sees(self, shown: Sequence[npt.NDArray[np.float32]]) -> None:
        """Take note of what all clients have shown, whose shapes the answers have."""
        self._shown = [rows.shape for rows in shown]

    def answer(self, rows: Sequence[Any]) -> Offer:
        """See `program.Preparing`."""
        if not isinstance(rows, Sequence) or not len(rows) == len(self._shown) > 0:
            raise Breach("answers: it must be a list of rows for each client that has shown some")
        each = [checks.rows(part, shape) for part, shape in zip(rows, self._shown, strict=True)]
        each[self.id] = np.zeros_like(each[self.id])
        return Offer("answer", np.concatenate(each))

    def adam(self, size: int, *, lr: float, weight_decay: float) -> Callable[[Any, Any], None]:
        """See `program.Preparing`."""
        return adam_steps(size, self.device, lr=lr, weight_decay=weight_decay)

    def add_nodes(self, neighbours: Ints, features: npt.NDArray[np.float32]) -> None:
        """See `program.Preparing`."""
        nodes, width = self.graphs.topology.num_nodes, self.graphs.features.shape[1]
        if self.graphs.places is None:
            raise Breach(
                "adds nodes to one graph whose nodes are examples, and this client has several graphs"
            )
        found = checks.some(neighbours, np.arange(nodes), "node")
        if not np.array_equal(np.sort(neighbours), neighbours) or not len(found) <= len(neighbours):
            raise Breach("adds nodes to neighbours that are not in ascending order")
        self.added = Generated(np.asarray(neighbours), checks.rows(features, (len(neighbours), width)))

    def work(self, flops: int) -> None:
        """See `program.Preparing`."""
        self.flops += checks.length(flops)
