"""Tasks of which the record holds figures of all clients together: `record = "protocol"`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedmpi.metrics.metric import ACCURACY
from fedmpi.store.schema import Better, Field
from fedmpi.tasks.base import Task

_PARTS = {"train": "training", "val": "validation", "test": "test"}


def _fields(name: str, title: str, unit: str, better: Better) -> list[Field]:
    return [
        Field(
            f"{part}_{name}",
            ("round",),
            "f8",
            unit,
            f"{title} over all clients' {words} examples",
            "result",
            better,
        )
        for part, words in _PARTS.items()
    ]


METRIC = replace(ACCURACY, scope="pooled", meaning="right predictions over the examples of all clients")
FIELDS = (*_fields("loss", "mean loss", "nat", "lower"), *_fields("accuracy", "accuracy", "1", "higher"))


def record_together(task: Task) -> None:
    """Have a task with classes record figures of all clients together; nothing of its examples travels."""
    task.metrics, task.fields = (METRIC,), FIELDS
    task.lengths = np.zeros_like(task.lengths)
    for method, answer in {"pack": np.zeros(0, np.uint8), "rows": {}, "partition": {}}.items():
        setattr(task, method, lambda *_, answer=answer: answer)
