"""Fields and metrics of tasks, for made-up runs: the one place of tests that knows them."""

from __future__ import annotations

from fedmpi.engine.scores import task_fields
from fedmpi.metrics.metric import (
    ACCURACY,
    CLUSTERING_ACCURACY,
    CLUSTERING_F1,
    MAE,
    PRC_AUC,
    R2,
    RMSE,
    ROC_AUC,
)
from fedmpi.store.schema import Field, held_out_losses, training_loss


def field(name, axis="client", dtype="f8"):
    """Return a made-up result by round, and by an axis unless that is empty."""
    return Field(name, ("round", *axis.split()), dtype, "1", "made up", "result")


LOSSES = (training_loss("nat"), *held_out_losses("nat"))
CLASSIFICATION = (
    *LOSSES,
    *(field(f"{part}_accuracy") for part in ("train", "val", "test")),
    field("test_correct", "example", "u1"),
)
MULTI_LABEL = (*LOSSES, *task_fields("multi-task", by_client=True))
REGRESSION = (*LOSSES, *task_fields("regression", by_client=True))
CLUSTERING = (training_loss("nat"), *(field(m.name, "") for m in (CLUSTERING_ACCURACY, CLUSTERING_F1)))

METRICS = {
    "accuracy": (ACCURACY,),
    "roc_auc": (ROC_AUC, PRC_AUC),
    "rmse": (RMSE, MAE, R2),
    "clustering_accuracy": (CLUSTERING_ACCURACY, CLUSTERING_F1),
}
"""By name of the headline."""

FIELDS = dict(zip(METRICS, (CLASSIFICATION, MULTI_LABEL, REGRESSION, CLUSTERING), strict=True))
