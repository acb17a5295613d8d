"""Tasks by name: the files of fedmpi.tasks, entry points, and plug-in files (imports without torch)."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from fedmpi.datasets.names import has_classes
from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of
from fedmpi.metrics.metric import METRICS, Metric
from fedmpi.tasks.base import KINDS, Task
from fedmpi.tasks.pooled import PooledTask

_TAKEN = ("loss",)
"""Names that would make fields of every record."""


def _refuse_misfit(task: type[Task]) -> None:
    """Raise BadInput where a class names what are no labels, metrics or kernels."""
    place = f"{file_of(task)}: class {task.__name__}"
    if task.labels not in KINDS:
        raise BadInput(f"{place}: labels = {task.labels!r}: it must be one of {', '.join(KINDS)}")
    if not isinstance(inspect.getattr_static(task, "examples"), classmethod):
        raise BadInput(f"{place}: `examples` must be a @classmethod")
    supervised = [each for each in ("loss", "outcome") if getattr(task, each) is getattr(Task, each)]
    missing = sorted(task.__abstractmethods__) + (supervised if task.supervised else [])
    if missing:
        raise BadInput(f"{place}: it must define {_listed(missing)}, as its base says")
    if "kernels" in vars(task) and not task.__module__.startswith("fedmpi."):
        raise BadInput(f"{place}: kernels: those of a plug-in's task are torch's; leave it out")
    if not isinstance(getattr(task, "loss_unit", ""), str):
        raise BadInput(f"{place}: loss_unit must be a text")
    _refuse_metrics(task, f"{place}: metrics")


def _refuse_metrics(task: type[Task], place: str) -> None:
    metrics = task.metrics
    if not metrics or not isinstance(metrics, tuple) or not all(isinstance(m, Metric) for m in metrics):
        raise BadInput(f"{place} = {metrics!r}: it must be a tuple of Metric, the headline first")
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        raise BadInput(f"{place}: two have one name ({_listed(names)})")
    for metric in metrics:
        if METRICS.get(metric.name, metric) != metric:
            raise BadInput(f'{place}: "{metric.name}" is another metric of fedmpi: rename it')
        if metric.name in _TAKEN:
            raise BadInput(f'{place}: "{metric.name}" is a field of every record: rename it')
        if issubclass(task, PooledTask) and metric.scope != "pooled":
            raise BadInput(
                f'{place}: "{metric.name}" has the scope "{metric.scope}", a PooledTask has one '
                'value over all held-out examples: scope = "pooled"'
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


TASKS: Kind[Task] = Kind(
    "task",
    Task,  # type: ignore[type-abstract]
    "fedmpi.tasks",
    "fedmpi.tasks",
    refuse_misfit=_refuse_misfit,
)
"""All tasks by name."""

_USUAL = {
    ("graph", "classification"): "graph-classification",
    ("graph", "multi-task"): "multi-label",
    ("graph", "regression"): "regression",
    ("node", "classification"): "node-classification",
    ("node", "multi-task"): "node-multi-label",
    ("edge", "classification"): "relation-prediction",
    ("edge", "regression"): "rating-prediction",
}
"""Task of a dataset's own labels, where the case names none, by examples and kind of labels."""


def classifies(task: str, dataset: str) -> bool:
    """Return whether each graph has one class, by the task that a case names or else by its dataset."""
    if task in TASKS:
        return TASKS[task].labels == "classification" and TASKS[task].of == "graph"
    return has_classes(dataset)


def usual_task(examples: str, labels: str) -> str:
    """Return the name of the task of such labels, where the case names none."""
    return _USUAL[examples, labels]


def task_of(name: str, examples: str, labels: str, *, supervised: bool) -> type[Task]:
    """Return the task of a case: the one it names, else that of its objective and its dataset's labels.

    Parameters
    ----------
    name : str
        As the case has it; may be empty.
    examples, labels : str
        Of the dataset: `RawGraphs.examples` and `RawGraphs.task`.
    supervised : bool
        Of the objective.
    """
    return TASKS.find(name or (usual_task(examples, labels) if supervised else "clustering"))
