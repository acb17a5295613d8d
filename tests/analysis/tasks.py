"""Fields and metrics of tasks, for made-up runs: the one place of tests that knows them."""

from __future__ import annotations

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


def pooled(metrics, more=()):
    """Return the fields of a task that is judged over all clients' examples: by column, and the headline by client."""
    parts = ("val", "test")
    every = [field(each.field(part), "") for part in parts for each in metrics]
    columns = [field(f"{part}_task_{each.name}", "task") for part in parts for each in metrics]
    own = [field(f"client_{metrics[0].field(part)}") for part in parts]
    return (*LOSSES, *every, *columns, *own, *(field(name, "", "i4") for name in more))


CLUSTERING = (training_loss("nat"), *(field(m.name, "") for m in (CLUSTERING_ACCURACY, CLUSTERING_F1)))

METRICS = {
    "accuracy": (ACCURACY,),
    "roc_auc": (ROC_AUC, PRC_AUC),
    "rmse": (RMSE, MAE, R2),
    "clustering_accuracy": (CLUSTERING_ACCURACY, CLUSTERING_F1),
}
"""By name of the headline."""

FIELDS = {
    "accuracy": CLASSIFICATION,
    "roc_auc": pooled(METRICS["roc_auc"], more=("val_tasks_left_out", "test_tasks_left_out")),
    "rmse": pooled(METRICS["rmse"]),
    "clustering_accuracy": CLUSTERING,
}
