"""Rating prediction: a number for each pair of a user and an item, squared error, RMSE over all pairs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import ExampleKind
from fedmpi.metrics.metric import MAE, MSE, R2, RMSE, Metric
from fedmpi.metrics.tasks import mse
from fedmpi.tasks.base import Rows
from fedmpi.tasks.pooled import Floats, means
from fedmpi.tasks.regression import Regression


class RatingPrediction(Regression):
    """FedGraphNN's Table 3 has MAE, MSE and RMSE as means over clients of each client's own."""

    name: ClassVar[str] = "rating-prediction"
    of: ClassVar[ExampleKind] = "edge"
    kernels: ClassVar[frozenset[str]] = frozenset({"csr", "reference"})
    metrics: tuple[Metric, ...] = (RMSE, MAE, MSE, R2)
    own: ClassVar[int] = 3

    def score(self, metric: Metric, labels: Floats, predicted: npt.NDArray[np.floating]) -> Floats:
        """Return RMSE, MAE, MSE or R2."""
        return mse(labels, predicted) if metric == MSE else super().score(metric, labels, predicted)

    def partition(self) -> Rows:
        """Return what the mean training rating scores by every metric, and by some as clients' mean."""
        test, sizes = self._held_out["test"], self._sizes[:, 1]
        constant = np.broadcast_to(means(self._trained), test.shape)
        scores = {f"constant_{each.name}": self.score(each, test, constant) for each in self.metrics}
        client = np.repeat(np.arange(len(sizes)), sizes)
        for metric in self.metrics[: self.own]:
            own = [self._own(metric, test, constant, client == number) for number in range(len(sizes))]
            scores[f"constant_client_{metric.name}"] = np.array(np.nanmean(own))
        return {"task_names": np.array(self._names), **scores}
