"""Records before schema 4: they do not name the metrics of their run, and all have the same fields."""

from __future__ import annotations

from collections.abc import Collection

from fedmpi.metrics.metric import ACCURACY, METRICS, Metric
from fedmpi.store.schema import Field, held_out_losses, training_loss

SAYS_METRICS = 4
"""The first schema whose records name their metrics, and hold no fields of other tasks."""


def _field(name: str, axis: str = "client", dtype: str = "f8") -> Field:
    return Field(name, ("round", axis), dtype, "1", "", "result", "higher")


_ACCURACIES = (
    *(_field(f"{part}_accuracy") for part in ("train", "val", "test")),
    _field("test_correct", "example", "u1"),
)

FIELDS = (training_loss("nat"), *held_out_losses("nat"), *_ACCURACIES)
"""Fields that every run had, whatever its task."""


def metrics_of(names: Collection[str]) -> tuple[Metric, ...]:
    """Return the metrics of a run with these fields beside `FIELDS`, the headline first."""
    found = tuple(metric for metric in METRICS.values() if metric is not ACCURACY and metric.field() in names)
    return found or (ACCURACY,)


def blank_fields(metrics: tuple[Metric, ...]) -> set[str]:
    """Return the names among `FIELDS` that such a run never wrote."""
    if metrics == (ACCURACY,):
        return set()
    blank = {field.name for field in _ACCURACIES}
    return blank if metrics[0].held_out else blank | {field.name for field in held_out_losses("nat")}
