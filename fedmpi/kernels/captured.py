"""Work on a GPU captured once and replayed: one launch in place of hundreds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

_memory = cache(torch.cuda.graph_pool_handle)

_TRIALS = 2
"""Runs before the capture, in which libraries make ready what a capture may not."""


class Captured:
    """What an action does on the current GPU, as a CUDA graph.

    All share the memory of what lies between: they are replayed one after another, on one stream.

    Parameters
    ----------
    action : callable
        Reads and writes memory that stays where it is, and returns tensors. It runs some times before it is
        captured.
    """

    def __init__(self, action: Callable[[], tuple[Tensor, ...]]) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_TRIALS):
                action()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=_memory()):
            self._found = action()

    def run(self) -> tuple[Tensor, ...]:
        """Replay it; return copies of what it returned."""
        self._graph.replay()
        return tuple(each.clone() for each in self._found)
