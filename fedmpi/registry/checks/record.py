"""What a record without values of single clients can hold (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.case.privacy import Private
from fedmpi.case.schema import Case
from fedmpi.metrics.metric import ACCURACY
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.known import classifies


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return why a run cannot be recorded as the case asks, and what to do; None where it can."""
    reason = _unrecordable(case) if case.record == "protocol" else ""
    return ("record", reason) if reason else None


def _unrecordable(case: Case) -> str:
    """Return why a run cannot do without values of single clients on rank 0, or nothing."""
    if not case.reduction.secret:
        return f'"protocol" is for secure sums, "{case.reduction.name}" hides nothing: use "full"'
    if isinstance(case.privacy, Private):
        return f'"{case.privacy.name}" privacy does not count sums of counts, without noise: use "full"'
    if case.reduction.dropouts.steps:
        return 'counts are summed over all participants, none may drop out: use "full"'
    task = task_named(case.task, case.dataset.name)
    if not case.objective.supervised or not (
        classifies(case.task, case.dataset.name) or (task is not None and ACCURACY in task.metrics)
    ):
        return 'hits of classes can be summed, the scores of this task cannot: use "full"'
    return ""
