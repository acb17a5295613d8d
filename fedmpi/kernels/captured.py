"""Work on a GPU captured once and replayed, one launch in place of hundreds; in lanes, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from itertools import cycle

import torch
from torch import Tensor

LANES = 4
"""Of a GPU; each holds the memory of what lies between in the largest work that is captured there."""


class Lane:
    """A stream of a GPU, and memory for what is captured on it: a context in which work goes there.

    It goes on after what the surrounding stream was given before. The other way round the host waits: nobody
    may touch what a lane works on before the host has the results.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._inside = ExitStack()

    def __enter__(self) -> None:
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        self._inside.enter_context(torch.cuda.stream(self._stream))

    def __exit__(self, *failure: object) -> None:
        self._inside.close()


def lane(device: torch.device) -> Lane:
    """Return a GPU's lanes in turn."""
    return next(_lanes(device))


@cache
def _lanes(device: torch.device) -> Iterator[Lane]:
    return cycle([Lane(device) for _ in range(LANES)])


class Captured:
    """What an action does in the present lane, as a CUDA graph.

    All of a lane share the memory of what lies between: they are replayed one after another. Lanes share
    none, nor the workspaces of libraries, which belong to a stream.

    Parameters
    ----------
    action : callable
        Reads and writes memory that stays where it is, and returns tensors. It runs once before it is
        captured.
    """

    def __init__(self, action: Callable[[], tuple[Tensor, ...]]) -> None:
        pool = _first(torch.cuda.current_stream()).pool()
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

    def run(self) -> tuple[Tensor, ...]:
        """Replay it in its lane; return copies of what it returned."""
        self._graph.replay()
        return tuple(each.clone() for each in self._found)


@cache
def _first(stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Return a graph of a lane that is kept: without any, torch gives back the memory that all share.

    A process that runs many cases keeps as much of it as the largest case took.
    """
    graph, one = torch.cuda.CUDAGraph(), torch.zeros(1, device=stream.device)
    with torch.cuda.graph(graph, stream=stream):
        one.add_(1.0)
    return graph
