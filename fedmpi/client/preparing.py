"""A client before round 1: the verbs of `fedmpi.algorithms.program.Preparing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.program import Offer
from fedmpi.client.optimizer import adam_steps
from fedmpi.graphs.mended import Generated
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach


@dataclass(eq=False)
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

    id: int
    seed: int
    classes: int
    graphs: GraphSet
    device: torch.device | str
    proceed: Callable[[], None]
    added: Generated | None = None
    flops: int = 0
    _counted: int = -1
    _shown: list[tuple[int, ...]] = field(default_factory=list)

    def count(self, number: int) -> Offer:
        """See `program.Preparing`."""
        return Offer("count", checks.length(number))

    def show(self, rows: Any) -> Offer:
        """See `program.Preparing`."""
        if self._counted < 0:
            raise Breach("shows rows: first `yield client.count(n)`, with how many")
        width = max(1, rows.shape[-1]) if getattr(rows, "ndim", 0) == 2 else 1
        return Offer("show", checks.array(rows, "float32", (self._counted, width)))

    def note(self, kind: str, answer: Any) -> None:
        """Take note of what an exchange has brought: how many rows are shown, and their shapes."""
        self._counted = int(answer[self.id]) if kind == "count" else self._counted
        self._shown = [rows.shape for rows in answer] if kind == "show" else []

    def answer(self, rows: Sequence[Any]) -> Offer:
        """See `program.Preparing`."""
        if not isinstance(rows, Sequence) or not len(rows) == len(self._shown) > 0:
            raise Breach("answers: it must be a list of rows for each client that has shown some")
        each = [checks.array(part, "float32", shape) for part, shape in zip(rows, self._shown, strict=True)]
        each[self.id] = np.zeros_like(each[self.id])
        return Offer("answer", np.concatenate(each))

    def adam(self, size: int, *, lr: float, weight_decay: float) -> Callable[[Any, Any], None]:
        """See `program.Preparing`."""
        return adam_steps(size, self.device, lr=lr, weight_decay=weight_decay)

    def add_nodes(self, neighbours: Int, features: npt.NDArray[np.float32]) -> None:
        """See `program.Preparing`."""
        graphs, width = self.graphs, self.graphs.features.shape[1]
        of_nodes = graphs.places is not None and graphs.places.ndim == 1
        if graphs.num_graphs > 1 or not of_nodes:
            raise Breach("adds nodes, which is for one graph whose nodes are examples")
        if self.added is not None:
            raise Breach("adds nodes a second time: add all at once")
        numbers = checks.integers(neighbours, "nodes")
        checks.some(numbers, np.arange(graphs.topology.num_nodes), "node")
        if not np.array_equal(np.sort(numbers), numbers):
            raise Breach("adds nodes to neighbours that are not in ascending order")
        rows = checks.array(features, "float32", (len(numbers), width))
        self.added = Generated(numbers.copy(), rows.copy())

    def work(self, flops: int) -> None:
        """See `program.Preparing`."""
        self.flops += checks.length(flops)
