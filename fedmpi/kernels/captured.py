"""Work on a GPU captured once and replayed: one launch in place of hundreds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

import torch
from torch import Tensor


class Captured:
    """What an action does on the current GPU, as a CUDA graph.

    All share the memory of what lies between: they are replayed one after another, on one stream.

    Parameters
    ----------
    action : callable
        Reads and writes memory that stays where it is, and returns tensors. It runs once before it is
        captured.
    """

    def __init__(self, action: Callable[[], tuple[Tensor, ...]]) -> None:
        device = torch.cuda.current_device()
        pool, side, caller = _first(device).pool(), _side(device), torch.cuda.current_stream()
        side.wait_stream(caller)
        with torch.cuda.stream(side):
            action()  # libraries make ready what a capture may not
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            self._graph.capture_begin(pool=pool)  # torch.cuda.graph would also empty the cache of memory
            try:
                self._found = action()
            except BaseException:
                with suppress(RuntimeError):  # of the capture, which the action has broken
                    self._graph.capture_end()
                raise
            self._graph.capture_end()
        caller.wait_stream(side)

    def run(self) -> tuple[Tensor, ...]:
        """Replay it; return copies of what it returned."""
        self._graph.replay()
        return tuple(each.clone() for each in self._found)


@cache
def _side(device: int) -> torch.cuda.Stream:
    """Return the stream of a GPU on which actions are tried and captured."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@cache
def _first(device: int) -> torch.cuda.CUDAGraph:
    """Return a graph of a GPU that is kept: without any, torch gives back the memory that all share.

    A process that runs many cases keeps as much of it as the largest case took.
    """
    graph, one = torch.cuda.CUDAGraph(), torch.zeros(1, device=torch.device("cuda", device))
    with torch.cuda.graph(graph):
        one.add_(1.0)
    return graph
