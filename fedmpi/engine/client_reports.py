"""What a client tells the server of its training graphs, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.algorithms.capabilities import Trained
from fedmpi.case.schema import Case
from fedmpi.engine.hooks import Hooks
from fedmpi.engine.kept import PROTOTYPES
from fedmpi.engine.molecules import MoleculePasses
from fedmpi.engine.passes import CompiledPasses, Embedded, Embedding, Pass, TorchPasses
from fedmpi.engine.prototypes import PrototypeShape, judged

if TYPE_CHECKING:
    from fedmpi.engine.clients import Client

Classifying = CompiledPasses | MoleculePasses | TorchPasses
"""Passes of supervised objectives."""

Work = Pass | Embedded | Embedding
"""What takes FLOPs beside the steps."""

Report = tuple[npt.NDArray[np.uint8], bool]
"""A report, and whether an embedding in it is not finite."""


def report_of(client: Client, case: Case, algorithm: Hooks, round: int, work: list[Work]) -> Report:
    """Return the client's report after its training; its passes are appended to `work`."""
    if client.prototypes is not None:
        return _prototypes(client, client.prototypes, work)
    size, means = algorithm.report_size(case.model), list[npt.NDArray[np.float64]]()
    if not algorithm.regroups or not size:
        return np.zeros(0, np.uint8), False

    def mean_embedding() -> npt.NDArray[np.float64]:
        assert isinstance(client.passes, Classifying)  # checked with the suite
        found = client.passes.embed()
        work.append(found)
        means.append(found.mean)
        return found.mean

    report = algorithm.regroups.report(Trained(case.seed, client.id, round, mean_embedding), size)
    return report, any(not np.isfinite(mean.astype(np.float32)).all() for mean in means)


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
    prototypes = client.kept[PROTOTYPES].view(shape.classes, -1)
    if bool(torch.isnan(prototypes).all()) or not len(found.outcome.losses):
        return found
    return judged(found, passes.embedded_held_out(), passes.held_out_labels, prototypes)
