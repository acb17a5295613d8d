"""What an algorithm needs of its case (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.declared import kernels_of
from fedmpi.case.schema import Case
from fedmpi.errors import BadInput
from fedmpi.models.options import FedGraphNNOptions, ModelOptions
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.base import kernels_of as kernels_of_task
from fedmpi.tasks.known import classifies


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting that the algorithm cannot honour, and what to do; None where all fit."""
    name = algorithm.name
    if (wrong := _kernels(algorithm, case)) is not None:
        return wrong
    if algorithm.needs_sgd and case.optimizer.name != "sgd":
        return "optimizer", f'{name} has plain SGD on the clients: use optimizer = "sgd"'
    if not algorithm.reads_share and case.share != "conv":
        return "share", f"{name} decides which tensors are shared: remove the setting `share`"
    if algorithm.needs_labels and not case.objective.supervised:
        return "objective", f'{name} needs a classifier: use "supervised"'
    if algorithm.reads_embeddings and (reason := _without_embeddings(case)):
        return "task", f"{name} reads graphs' embeddings, {reason}"
    if algorithm.needs_classes and not classifies(case.task, case.dataset.name):
        return "task", f"{name} works by class: use a task of one class per graph"
    if reason := _other_task(algorithm.tasks, case):
        return "task", reason
    if algorithm.tasks and case.dataset.egos is not None:
        return "dataset.egos", f"{name} is for nodes of one graph: remove it"
    if case.public and (case.model.own_head or not case.objective.supervised):
        return "public", "it is for labels that all clients have alike: leave it out"
    if reason := _refusal(algorithm, case):
        return "algorithm", reason
    if "groups" in algorithm.decides and case.participation < 1:
        return "participation", f"{name} groups all clients in every round: it must be 1"
    return None


def _kernels(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Refuse kernels that cannot run the model, the objective, the algorithm or the optimizer."""
    others = (case.model, case.objective, case.optimizer)
    parts = [(algorithm.name, able_kernels(type(algorithm), case.model))]
    if (task := task_named(case.task, case.dataset.name)) is not None:
        parts.append((f'task "{task.name}"', kernels_of_task(task)))
    parts += [(str(part.name), part.kernels) for part in others]
    for name, kernels in parts:
        if case.kernels not in kernels:
            common = sorted(frozenset.intersection(*(each for _, each in parts)))
            names = ", ".join(f'"{kind}"' for kind in common)
            return "kernels", f'"{case.kernels}" cannot run {name} as it is here: use {names}'
    return None


def able_kernels(algorithm: type[Algorithm], model: ModelOptions) -> frozenset[str]:
    """Return the kernels that can run an algorithm with a model: compiled molecules give no embeddings."""
    able = kernels_of(algorithm)
    if algorithm.reads_embeddings and isinstance(model, FedGraphNNOptions):
        return able - {"compiled"}
    return able


def _without_embeddings(case: Case) -> str:
    """Return why the examples of a case have no embeddings of graphs, or nothing."""
    task = task_named(case.task, case.dataset.name)
    return f'and task "{task.name}" is about {task.of}s' if task is not None and task.of != "graph" else ""


def _other_task(tasks: frozenset[str], case: Case) -> str:
    """Return that the case has none of the tasks that the algorithm is for, or nothing."""
    task = task_named(case.task, case.dataset.name)
    if not tasks or (task is not None and task.name in tasks):
        return ""
    kinds = ", ".join(f'"{name}"' for name in sorted(tasks))
    here = f'the task is "{task.name}"' if task is not None else f"{case.dataset.name} has labels of graphs"
    return f"{case.algorithm.name} is for {kinds}, and {here}"


def _refusal(algorithm: Algorithm, case: Case) -> str:
    """Return why the algorithm cannot train the case's model, or nothing."""
    try:
        algorithm.validate(case.model)
    except BadInput as error:
        return f"{algorithm.name} {' '.join(str(error).split())}"
    except (SystemExit, KeyboardInterrupt) as error:  # no Ctrl-C, which raises another
        return f"{algorithm.name}: hook validate raised {type(error).__name__}"
    return ""
