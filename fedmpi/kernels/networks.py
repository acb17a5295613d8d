"""Compiled kernels by a model's options."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput
from fedmpi.graphs.packed import GraphSet, Int
from fedmpi.kernels.graph_network import FastGraphNetwork
from fedmpi.kernels.pooled_network import EmbeddingTerm
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.two_channel import FastFedStar
from fedmpi.models.dropout import DropoutStreams
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import (
    FedStarOptions,
    GinOptions,
    MessagePassingOptions,
    ModelOptions,
)
from fedmpi.models.outcome import Outcome


class FastBatch(Protocol):
    """Training graphs as compiled kernels take them."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of graphs, nodes and directed edges."""

    def take(self, graphs: Int, /) -> Any:
        """Return the given graphs, packed anew."""


class FastNetwork(Protocol):
    """Compiled forward and backward passes of one model shape on one CPU thread."""

    def prepare(self, graphs: GraphSet) -> Any:
        """Return graphs as `step` takes them, a `FastBatch`."""

    def step(self, batch: Any, streams: DropoutStreams, term: EmbeddingTerm | None = None) -> Outcome:
        """Run forward and backward; the model's gradient becomes that of the mean loss and the term."""

    def step_flops(self, batch: Any) -> int:
        """Return the FLOPs of `step`."""

    def levels(self, graphs: GraphSet) -> Any:
        """Return graphs as `evaluate` and `embed` take them."""

    def evaluate(self, graphs: Any, labels: npt.NDArray[np.int64]) -> Outcome:
        """Classify graphs without dropout."""

    def embed(self, graphs: Any) -> npt.NDArray[np.float32]:
        """Return what is pooled of each graph without dropout, float32 [B, h]."""

    def evaluation_flops(self, graphs: Any) -> int:
        """Return the FLOPs of `evaluate`."""


def fast_network(options: ModelOptions, model: FlatModel, scratch: Scratch) -> FastNetwork:
    """Return the compiled kernels of a model that has them, bound to its vectors."""
    match options:
        case FedStarOptions():
            return FastFedStar(options, model, scratch)
        case GinOptions() | MessagePassingOptions():
            return FastGraphNetwork(options, model, scratch)
        case _:
            raise BadInput(f'model "{options.name}" has no compiled kernels, though its `kernels` says so')
