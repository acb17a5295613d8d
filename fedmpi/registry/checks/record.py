"""What a record without values of single clients can hold (imports without torch)."""

from __future__ import annotations

from fedmpi.case.privacy import Private
from fedmpi.case.schema import Case, Misfits
from fedmpi.metrics.metric import ACCURACY
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.known import classifies


def misfits(case: Case) -> Misfits:
    """Yield why a run cannot do without values of single clients on rank 0, and what to do."""
    if case.record != "protocol":
        return
    if not case.reduction.secret:
        yield "record", f'"protocol" is for secure sums, "{case.reduction.name}" hides nothing: use "full"'
    if isinstance(case.privacy, Private):
        name = case.privacy.name
        yield "record", f'"{name}" privacy does not count sums of counts, without noise: use "full"'
    if case.reduction.dropouts.steps:
        yield "record", 'counts are summed over all participants, none may drop out: use "full"'
    task = task_named(case.task, case.dataset.name)
    counts_hits = task is not None and ACCURACY in task.metrics
    if not case.objective.supervised or not (counts_hits or classifies(case.task, case.dataset.name)):
        yield "record", 'hits of classes can be summed, the scores of this task cannot: use "full"'
