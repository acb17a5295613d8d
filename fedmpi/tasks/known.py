"""Tasks by name: the files of fedmpi.tasks, entry points, and plug-in files (imports without torch)."""

from __future__ import annotations

from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of
from fedmpi.metrics.metric import Metric
from fedmpi.tasks.base import KINDS, Task


def _refuse_misfit(task: type[Task]) -> None:
    """Raise BadInput where a class names what are no labels, metrics or kernels."""
    place, metrics = f"{file_of(task)}: class {task.__name__}", task.metrics
    if task.labels not in KINDS:
        raise BadInput(f"{place}: labels = {task.labels!r}: it must be one of {', '.join(KINDS)}")
    if not metrics or not isinstance(metrics, tuple) or not all(isinstance(m, Metric) for m in metrics):
        raise BadInput(f"{place}: metrics = {metrics!r}: it must be a tuple of Metric, the headline first")


TASKS: Kind[Task] = Kind(
    "task",
    Task,
    "fedmpi.tasks",
    "fedmpi.tasks",
    refuse_misfit=_refuse_misfit,
)
"""All tasks by name."""

_OF_LABELS = {
    "classification": "graph-classification",
    "multi-task": "multi-label",
    "regression": "regression",
}
"""Task of a dataset's own labels, where the case names none."""


def task_of(name: str, labels: str, *, supervised: bool) -> type[Task]:
    """Return the task of a case: the one it names, else that of its objective and its dataset's labels."""
    return TASKS.find(name or (_OF_LABELS[labels] if supervised else "clustering"))
