"""Labels as kernels train on them, and outputs as the task's predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.kernels.targets import CLASSES, LABELS, NUMBERS
from fedmpi.models.outcome import Outcome
from fedmpi.tasks.base import Task
from fedmpi.tasks.regression import Regression

TARGETS = {"classification": CLASSES, "multi-task": LABELS, "regression": NUMBERS}
"""Kernels' kind of targets by kind of labels."""


def targets_of(task: Task, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as kernels train on them: classes [G], else float64 [G, T]; numbers standardised."""
    if task.labels == "classification":
        return labels
    found = labels.astype(np.float32).astype(np.float64)
    return (found - task.center) / task.scale if isinstance(task, Regression) else found


def predicted(task: Task, outcome: Outcome) -> Outcome:
    """Return an outcome whose scores are outputs, with predictions of numbers in the labels' units."""
    if not isinstance(task, Regression):
        return outcome
    assert outcome.scores is not None
    return replace(outcome, scores=(outcome.scores * task.scale + task.center).astype(np.float32))
