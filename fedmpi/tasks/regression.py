"""One or more numbers per graph: squared error of labels that may be standardised, RMSE over all graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.metrics import tasks
from fedmpi.metrics.metric import MAE, R2, RMSE, Metric
from fedmpi.tasks.base import Settings
from fedmpi.tasks.pooled import Floats, PooledTask

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.datasets.raw import LabelKind, RawGraphs
    from fedmpi.partition.partition import ClientSplit

_SCORES = {RMSE: tasks.rmse, MAE: tasks.mae, R2: tasks.r2}


class Regression(PooledTask):
    """The model is trained on ``(label - center) / scale``; predictions are in the labels' own units.

    Attributes
    ----------
    center, scale : float64 [T]
    """

    name: ClassVar[str] = "regression"
    labels: ClassVar[LabelKind] = "regression"
    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "grouped", "csr", "reference"})
    reads_targets: ClassVar[bool] = True
    metrics: tuple[Metric, ...] = (RMSE, MAE, R2)

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        standardised = case.dataset.targets == "standardised"
        self.loss_unit = "1" if standardised else "label^2"
        super().__init__(case, raws, splits)
        self.center, self.scale = np.zeros(self._width), np.ones(self._width)
        if standardised:
            self.center, self.scale = standardisation(self._trained)

    def score(self, metric: Metric, labels: Floats, predicted: npt.NDArray[np.floating]) -> Floats:
        """Return RMSE, MAE or R2 of each target."""
        return _SCORES[metric](labels, predicted)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the squared error of each output against its standardised target."""
        import torch

        center, scale = (torch.from_numpy(each).to(labels.device) for each in (self.center, self.scale))
        wanted = (labels.double() - center) / scale
        return (outputs - wanted.to(outputs.dtype)).square()

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return outputs in the labels' own units."""
        import torch

        center, scale = (torch.from_numpy(each).to(outputs.device) for each in (self.center, self.scale))
        return outputs.double() * scale + center


def standardisation(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each target's labels [n, T], over those that are there.

    A target without any, or with equal ones, stays as it is or is only centred.
    """
    labelled = ~np.isnan(values).all(axis=0)
    known = np.ascontiguousarray(values[:, labelled])
    center, scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
    center[labelled], scale[labelled] = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    scale[scale == 0] = 1
    return center, scale
