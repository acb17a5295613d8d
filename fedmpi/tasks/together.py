"""Tasks of which the record holds figures of all clients together: `record = "protocol"`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedmpi.metrics.metric import ACCURACY, Metric
from fedmpi.tasks.base import HELD_OUT, Task, field_of

METRIC = replace(ACCURACY, scope="pooled", meaning="right predictions over the examples of all clients")
_LOSS = Metric("loss", "loss", "lower", unit="nat", meaning="mean loss")
FIELDS = tuple(
    field_of(metric, f"{part}_{metric.name}", f"{metric.meaning} over all clients' {words} examples")
    for metric in (_LOSS, ACCURACY)
    for part, words in {"train": "training", **HELD_OUT}.items()
)


def record_together(task: Task) -> None:
    """Have a task with classes record figures of all clients together; nothing of its examples travels."""
    task.metrics, task.fields = (METRIC,), FIELDS
    task.lengths = np.zeros_like(task.lengths)
    for method, answer in {"pack": np.zeros(0, np.uint8), "rows": {}, "partition": {}}.items():
        setattr(task, method, lambda *_, answer=answer: answer)
