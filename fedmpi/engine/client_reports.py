"""What a client tells the server of its training graphs, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.capabilities import NodeOutputs, Trained
from fedmpi.case.schema import Case
from fedmpi.engine.compiled_passes import CompiledPasses
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.molecules import MoleculePasses
from fedmpi.engine.node_outputs import Counted, mean_state_of, nodes_of
from fedmpi.engine.passes import Embedded, Embedding, Pass
from fedmpi.engine.prototypes import PrototypeShape, judged
from fedmpi.engine.torch_passes import TorchPasses
from fedmpi.errors import RankFailed
from fedmpi.graphs.packed import Topology

if TYPE_CHECKING:
    from fedmpi.engine.clients import Client

Classifying = CompiledPasses | MoleculePasses | TorchPasses
"""Passes of supervised objectives."""

Work = Pass | Embedded | Embedding | Counted
"""What takes FLOPs beside the steps."""

Report = tuple[npt.NDArray[np.uint8], bool]
"""A report, and whether an embedding in it is not finite."""


def report_of(client: Client, case: Case, algorithm: Hooks, round: int, work: list[Work]) -> Report:
    """Return the client's report after its training; its passes are appended to `work`."""
    if client.prototypes is not None:
        return _prototypes(client, client.prototypes, work)
    if algorithm.aggregates:
        trained = TrainedClient(client, work).seen(case, round)
        statistics = algorithm.aggregates.statistics(trained, client.num_statistics)
        return statistics.view(np.uint8).copy(), not bool(np.isfinite(statistics).all())
    if not algorithm.regroups or not (size := algorithm.regroups.report_size(case.model)):
        return np.zeros(0, np.uint8), False
    looked = TrainedClient(client, work)
    report = algorithm.regroups.report(looked.seen(case, round), size)
    return report, not looked.finite


class TrainedClient:
    """What an algorithm may ask of a client after its training.

    Attributes
    ----------
    finite : bool
        Whether all that was returned is finite in single precision.

    Parameters
    ----------
    client : Client
        Its workspace holds the trained model.
    work : list of Work
        Passes are appended to it.
    """

    def __init__(self, client: Client, work: list[Work]) -> None:
        self._client, self._work, self.finite = client, work, True

    def seen(self, case: Case, round: int) -> Trained:
        """Return the client as hooks see it."""
        seed, client, width = case.seed, self._client.id, self._client.width
        asked = (self._mean_embedding, self._nodes, self._mean_state)
        return Trained(seed, client, round, width, *asked)

    def _mean_embedding(self) -> npt.NDArray[np.float64]:
        passes = self._client.passes
        assert isinstance(passes, Classifying)  # checked with the suite
        return self._noted(passes.embed())

    def _nodes(self) -> NodeOutputs:
        return nodes_of(self._torch_passes(), self._work)

    def _mean_state(self, topology: Topology, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        device = self._client.model.parameters.device
        return self._noted(mean_state_of(self._torch_passes(), topology, features, device))

    def _torch_passes(self) -> TorchPasses:
        passes = self._client.passes
        if not isinstance(passes, TorchPasses):
            raise RankFailed(
                "states of nodes are there under csr and reference: name the tasks of nodes in `tasks`"
            )
        return passes

    def _noted(self, found: Embedding) -> npt.NDArray[np.float64]:
        self._work.append(found)
        self.finite = self.finite and bool(np.isfinite(found.mean.astype(np.float32)).all())
        return found.mean


def _prototypes(client: Client, shape: PrototypeShape, work: list[Work]) -> Report:
    """Return the prototypes of the trained model."""
    passes = client.passes
    assert isinstance(passes, CompiledPasses | TorchPasses)  # checked with the suite

    def counted(parts: Iterator[Embedded]) -> Iterator[Embedded]:
        for part in parts:
            work.append(part)
            yield part

    report = shape.report(counted(passes.embedded()), passes.training_labels)
    means, _ = shape.read(report[None])
    return report, not bool(np.isfinite(means).all())


def by_prototypes(client: Client, found: Pass) -> Pass:
    """Return an evaluation by the nearest prototypes; as it is before there are any, and of no graph."""
    passes, shape = client.passes, client.prototypes
    assert shape is not None and isinstance(passes, CompiledPasses | TorchPasses)  # checked with the suite
    assert client.held_prototypes is not None
    prototypes = client.held_prototypes.view(shape.classes, -1)
    if bool(torch.isnan(prototypes).all()) or not len(found.outcome.losses):
        return found
    return judged(found, passes.embedded_held_out(), passes.held_out_labels, prototypes)
