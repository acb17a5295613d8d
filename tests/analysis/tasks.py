"""Fields and metrics of tasks, and records of made-up runs: the one place of tests that knows them."""

from __future__ import annotations

import numpy as np

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
from fedmpi.store.record import RunRecord
from fedmpi.store.schema import (
    Field,
    axis_sizes,
    blank_round,
    held_out_losses,
    measurement_fields,
    result_fields,
    training_loss,
)
from fedmpi.tasks import graph_classification
from tests.tasks.making import make_task


def field(name, axis="client", dtype="f8"):
    """Return a made-up result by round, and by an axis unless that is empty."""
    return Field(name, ("round", *axis.split()), dtype, "1", "made up", "result")


LOSSES = (training_loss("nat"), *held_out_losses("nat"))
MULTI_LABEL, REGRESSION = (make_task(kind, np.array([[1.0]])).fields for kind in ("multi-task", "regression"))
CLUSTERING = (training_loss("nat"), *(field(m.name, "") for m in (CLUSTERING_ACCURACY, CLUSTERING_F1)))

METRICS = {
    "accuracy": (ACCURACY,),
    "roc_auc": (ROC_AUC, PRC_AUC),
    "rmse": (RMSE, MAE, R2),
    "clustering_accuracy": (CLUSTERING_ACCURACY, CLUSTERING_F1),
}
"""By name of the headline."""

FIELDS = dict(zip(METRICS, (graph_classification.FIELDS, MULTI_LABEL, REGRESSION, CLUSTERING), strict=True))


def blank(clients, ranks=1, fields=FIELDS["accuracy"], **results):
    """Return one round of so many clients: results of these values, else blank, and blank measurements."""
    sizes = axis_sizes(clients, ranks, 1, {"task_names": ["one"]})
    found = blank_round(result_fields(fields), sizes)
    for name, values in {"participated": 1, **results}.items():
        found[name][...] = values
    return found, blank_round(measurement_fields(), sizes)


def begun(folder, config=None):
    """Record a run of three rounds of which none is finished."""
    about = {"config": config or {}, "clients": ["c"], "rounds": 3, "partition": {}}
    RunRecord.create(folder, **about, extra=FIELDS["accuracy"]).close()
    return folder


def recorded(folder, config, clients, rounds, *, ranks=2, status="complete", provenance=None, **about):
    """Record a run of one attempt from the results and measurements of its rounds; return its folder.

    `about` is the partition, and the fields and metrics where they are not those of accuracy.
    """
    about = {"partition": {}, "extra": FIELDS["accuracy"], **about}
    about |= {"config": config, "clients": clients, "rounds": len(rounds) or 3}
    with RunRecord.create(folder, **about) as record:
        record.begin_attempt(0, ranks, ["Bcast"], provenance or {})
        for index, (results, measurements) in enumerate(rounds):
            record.write_round(index, results, measurements)
        record.finish(status, "" if status == "complete" else "made up")
    return folder
