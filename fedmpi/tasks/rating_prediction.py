"""Rating prediction: a number for each pair of a user and an item, squared error, RMSE over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import ExampleKind
from fedmpi.metrics.metric import HIT_1, MAE, MSE, NDCG_10, R2, RMSE, Metric
from fedmpi.metrics.ranking import hit_ratio, ndcg
from fedmpi.metrics.tasks import mse
from fedmpi.tasks.base import Rows, Settings
from fedmpi.tasks.pooled import Floats, means
from fedmpi.tasks.regression import Regression

if TYPE_CHECKING:
    from fedmpi.datasets.raw import RawGraphs
    from fedmpi.partition.partition import ClientSplit


class RatingPrediction(Regression):
    """FedGraphNN's Table 3 has MAE, MSE and RMSE as means over clients of each client's own.

    For the ranking metrics a group is a client's ratings by one node, the first of the pair: a user; an item
    too where each rating is an example in both directions.
    """

    name: ClassVar[str] = "rating-prediction"
    of: ClassVar[ExampleKind] = "edge"
    kernels: ClassVar[frozenset[str]] = frozenset({"csr", "reference"})
    metrics: tuple[Metric, ...] = (RMSE, MAE, MSE, R2, NDCG_10, HIT_1)
    own: ClassVar[int] = 3
    ordered: ClassVar[tuple[Metric, ...]] = (NDCG_10, HIT_1)

    def __init__(self, case: Settings, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> None:
        super().__init__(case, raws, splits)
        raw, places = raws[0], np.asarray(raws[0].places)
        nodes = raw.rows_of(places[:, 0])
        many = int(nodes.max(initial=0)) + 1
        self._users = {
            part: np.concatenate(
                [client * many + nodes[split.examples(raw, part)] for client, split in enumerate(splits)]
            )
            for part in ("val", "test")
        }

    def score(self, metric: Metric, labels: Floats, predicted: npt.NDArray[np.floating]) -> Floats:
        """Return RMSE, MAE, MSE or R2."""
        return mse(labels, predicted) if metric == MSE else super().score(metric, labels, predicted)

    def more(self, part: str, predicted: npt.NDArray[np.floating], scored: npt.NDArray[np.bool_]) -> Rows:
        """Return NDCG@10 and hit ratio@1 of a part."""
        users, gains = self._users[part][scored], np.maximum(self._held_out[part][scored, 0], 0.0)
        values = predicted[scored, 0].astype(np.float64)
        return {
            NDCG_10.field(part): np.array(ndcg(users, gains, values, 10)),
            HIT_1.field(part): np.array(hit_ratio(users, gains, values)),
        }

    def partition(self) -> Rows:
        """Return what the mean training rating scores by every metric, and by some as clients' mean."""
        test, sizes = self._held_out["test"], self._sizes[:, 1]
        constant = np.broadcast_to(means(self._trained), test.shape)
        scores = {f"constant_{each.name}": self.score(each, test, constant) for each in self.scored}
        every = np.ones(len(test), np.bool_)
        for metric, score in zip(self.ordered, self.more("test", constant, every).values(), strict=True):
            scores[f"constant_{metric.name}"] = score[None]
        client = np.repeat(np.arange(len(sizes)), sizes)
        for metric in self.metrics[: self.own]:
            own = [self._own(metric, test, constant, client == number) for number in range(len(sizes))]
            scores[f"constant_client_{metric.name}"] = np.array(np.nanmean(own))
        return {"task_names": np.array(self._names), **scores}
