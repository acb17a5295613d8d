"""Tasks by name: those of fedmpi, and what else has been imported (imports without torch)."""

from __future__ import annotations

from fedmpi.config.tables import closest
from fedmpi.errors import BadInput
from fedmpi.tasks.base import Task
from fedmpi.tasks.clustering import Clustering
from fedmpi.tasks.graph_classification import GraphClassification
from fedmpi.tasks.multi_label import MultiLabel
from fedmpi.tasks.pooled import PooledTask
from fedmpi.tasks.regression import Regression

_OF_LABELS: dict[str, type[Task]] = {
    task.labels: task for task in (GraphClassification, MultiLabel, Regression)
}
"""Task of a dataset's own labels, where the case names none."""


def known() -> dict[str, type[Task]]:
    """Return all tasks by name."""
    return dict(sorted((task.name, task) for task in _subclasses(Task) if task is not PooledTask))


def find(name: str) -> type[Task]:
    """Return the task `name`.

    Raises
    ------
    BadInput
        There is none; the message lists those there are.
    """
    tasks = known()
    if name not in tasks:
        hint, valid = closest(name, tasks), ", ".join(tasks)
        raise BadInput(f'task: there is no "{name}"{hint} (valid: {valid}; own ones need --plugin)')
    return tasks[name]


def task_of(name: str, labels: str, *, supervised: bool) -> type[Task]:
    """Return the task of a case: the one it names, else that of its objective and its dataset's labels."""
    if name:
        return find(name)
    return _OF_LABELS[labels] if supervised else Clustering


def _subclasses(parent: type[Task]) -> list[type[Task]]:
    direct = parent.__subclasses__()
    return direct + [deeper for child in direct for deeper in _subclasses(child)]
