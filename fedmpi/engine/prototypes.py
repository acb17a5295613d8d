"""Class prototypes: what a client reports of its classes, how it reads them back, what they predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.engine.passes import Embedded, Pass
from fedmpi.errors import BadInput
from fedmpi.models.outcome import Outcome

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class PrototypeShape:
    """Classes and width of the prototypes of a federation."""

    classes: int
    width: int

    @property
    def size(self) -> int:
        """Elements of all prototypes."""
        return self.classes * self.width

    @property
    def down_bytes(self) -> int:
        """Bytes that a client gets: float32 [C, h]."""
        return 4 * self.size

    @property
    def up_bytes(self) -> int:
        """Bytes that a client sends: the same, and int32 [C]."""
        return self.down_bytes + 4 * self.classes

    def report(self, parts: Iterable[Embedded], labels: Ints) -> Bytes:
        """Return means and sizes of a client's classes, uint8 [up_bytes].

        Parameters
        ----------
        parts : iterable of Embedded
            Of the training graphs, in order; the means are summed in float64.
        labels : int64 [n]
        """
        sums = np.zeros((self.classes, self.width))
        counts, begin = np.bincount(labels, minlength=self.classes), 0
        for part in parts:
            rows = torch.as_tensor(part.rows).cpu().double().numpy()
            if rows.shape[1] != self.width:
                raise BadInput(f"embeddings are {rows.shape[1]} wide, the model's options say {self.width}")
            np.add.at(sums, labels[begin : begin + len(rows)], rows)
            begin += len(rows)
        means = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
        return np.concatenate([means.reshape(-1).view(np.uint8), counts.astype(np.int32).view(np.uint8)])

    def read(self, reports: Bytes) -> tuple[Floats, Ints]:
        """Return means, float32 [k, C, h], and sizes, int64 [k, C], of reports [k, up_bytes]."""
        means, counts = reports[:, : self.down_bytes], reports[:, self.down_bytes :]
        return (
            np.ascontiguousarray(means).view(np.float32).reshape(-1, self.classes, self.width),
            np.ascontiguousarray(counts).view(np.int32).astype(np.int64),
        )


def renewed(present: Tensor, received: Tensor) -> Tensor:
    """Return prototypes after new ones came, of which those that are NaN leave the present one."""
    return torch.where(torch.isnan(received), present, received)


def nearest(rows: Tensor, prototypes: Tensor) -> Tensor:
    """Return the class of the nearest prototype of each row, int64 [B]; one at least is no NaN.

    Parameters
    ----------
    rows : float32 [B, h]
    prototypes : float32 [C, h]
    """
    apart = (rows[:, None].double() - prototypes.double()).square().sum(dim=2)
    return torch.where(torch.isnan(apart), torch.inf, apart).argmin(dim=1)


def judged(found: Pass, parts: Iterable[Embedded], labels: Ints, prototypes: Tensor) -> Pass:
    """Return an evaluation whose hits are those of the nearest prototypes.

    Parameters
    ----------
    found : Pass
        With the model's head.
    parts : iterable of Embedded
        Of the same graphs.
    labels : int64 [n]
    prototypes : float32 [C, h]
    """
    classes, counted, executed = [], found.model_flops, found.executed_flops
    for part in parts:
        classes.append(nearest(torch.as_tensor(part.rows).cpu(), prototypes.cpu()).numpy())
        counted, executed = counted + part.model_flops, executed + part.executed_flops
    hits = (np.concatenate(classes) == labels).astype(np.uint8)
    outcome: Outcome = replace(found.outcome, hits=hits)
    return replace(found, outcome=outcome, model_flops=counted, executed_flops=executed)
