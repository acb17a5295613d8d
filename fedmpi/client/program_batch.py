"""Training graphs of a step as programs see them: `fedmpi.algorithms.program.Batch`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from fedmpi.client.torch_passes import TorchPasses
from fedmpi.graphs.packed import Int
from fedmpi.models.dropout import DropoutStreams
from fedmpi.programs.hook_checks import Breach


class Owner(Protocol):
    """What a batch asks of its client, a `fedmpi.client.trainee.Trainee`."""

    @property
    def labels_there(self) -> Tensor:
        """Labels of all training graphs."""

    @property
    def model(self) -> Tensor:
        """The model vector, on the client's device."""

    @property
    def by_torch(self) -> TorchPasses:
        """The client's passes, which give outputs."""


@dataclass(frozen=True)
class Batch:
    """Training graphs of a step: see `fedmpi.algorithms.program.Batch`.

    Attributes
    ----------
    trainee : Owner
    prepared
        As the kernels take it.
    numbers : int64 [B] or None
        Of the graphs; None: all of the client's.
    streams : DropoutStreams or None
        None: each pass has its own.
    labelled : bool
        Whether the client knows their labels.
    """

    trainee: Owner
    prepared: Any
    numbers: Int | None
    streams: DropoutStreams | None
    labelled: bool = True

    @property
    def labels(self) -> Tensor:
        """Labels of the graphs, on the model's device."""
        if not self.labelled:
            raise Breach("used labels of the public graphs, which no client has")
        return self.of(self.trainee.labels_there).to(self.trainee.model.device)

    @property
    def features(self) -> Tensor:
        """Features of the graphs' nodes, [N, d]."""
        return self.prepared.features  # type: ignore[no-any-return]

    def moved(self, shift: Tensor) -> Batch:
        """Return the same graphs with other features."""
        if not isinstance(shift, Tensor) or shift.shape != self.features.shape:
            raise Breach(f"moved features by another shape than theirs, {list(self.features.shape)}")
        return replace(self, prepared=self.prepared.moved(shift))

    def losses(self, outputs: Tensor, labels: Tensor | None = None) -> Tensor:
        """Return the task's loss of each label."""
        passes = self.trainee.by_torch
        return passes.losses(outputs, self.labels if labels is None else labels)

    def soft_labels(self, outputs: Tensor) -> Tensor:
        """Return what outputs predict, as labels."""
        return self.trainee.by_torch.soft_labels(outputs)

    def of(self, rows: Tensor) -> Tensor:
        """Return the graphs' rows of a table of all training graphs."""
        if not self.labelled:
            raise Breach("used a table of training graphs for the public graphs, which are none")
        return rows if self.numbers is None else rows[torch.from_numpy(self.numbers)]
