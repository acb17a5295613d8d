"""What an algorithm needs of its case (imports without torch)."""

from __future__ import annotations

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.declared import kernels_of
from fedmpi.case.schema import Case, Misfits
from fedmpi.datasets.names import weighted
from fedmpi.errors import BadInput
from fedmpi.models.options import FedGraphNNOptions, ModelOptions
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.base import Task
from fedmpi.tasks.base import kernels_of as kernels_of_task
from fedmpi.tasks.known import classifies


def misfits(algorithm: Algorithm, case: Case) -> Misfits:
    """Yield the settings that the algorithm cannot honour, and what to do."""
    name, task = algorithm.name, task_named(case.task, case.dataset.name)
    yield from _kernels(algorithm, case, task)
    if algorithm.needs_sgd and (case.optimizer.name != "sgd" or case.optimizer.momentum):
        yield "optimizer", f'{name} has plain SGD on the clients: use optimizer = "sgd"'
    if not algorithm.reads_share and case.share != "conv":
        yield "share", f"{name} decides which tensors are shared: remove the setting `share`"
    if algorithm.runs_network and case.share != "all":
        yield "share", f'{name} has a server that runs the whole network: use "all"'
    if algorithm.needs_labels and not case.objective.supervised:
        yield "objective", f'{name} needs a classifier: use "supervised"'
    if algorithm.reads_embeddings and task is not None and task.of != "graph":
        yield "task", f'{name} reads graphs\' embeddings, and task "{task.name}" is about {task.of}s'
    if algorithm.reads_losses and task is not None and task.losses is Task.losses:
        yield "task", f'{name} reads the loss of each label, which task "{task.name}" does not define'
    if algorithm.reads_losses and weighted(case.dataset.name):
        yield "dataset", f"{name} weighs labels itself, and these have weights: rename their column `weight`"
    if algorithm.needs_classes and not classifies(case.task, case.dataset.name):
        yield "task", f"{name} works by class: use a task of one class per graph"
    if algorithm.tasks and (task is None or task.name not in algorithm.tasks):
        kinds = ", ".join(f'"{each}"' for each in sorted(algorithm.tasks))
        here = f'the task is "{task.name}"' if task else f"{case.dataset.name} has labels of graphs"
        yield "task", f"{name} is for {kinds}, and {here}"
    if algorithm.tasks and case.dataset.egos is not None:
        yield "dataset.egos", f"{name} is for nodes of one graph: remove it"
    if case.public and (case.model.own_head or not case.objective.supervised):
        yield "public", "it is for labels that all clients have alike: leave it out"
    if reason := _refusal(algorithm, case):
        yield "algorithm", reason
    if "groups" in algorithm.decides and case.participation < 1:
        yield "participation", f"{name} groups all clients in every round: it must be 1"


def _kernels(algorithm: Algorithm, case: Case, task: type[Task] | None) -> Misfits:
    """Yield that the kernels cannot run the model, the objective or the algorithm."""
    parts = [(algorithm.name, able_kernels(type(algorithm), case.model))]
    if task is not None:
        parts.append((f'task "{task.name}"', kernels_of_task(task)))
    parts += [(str(part.name), part.kernels) for part in (case.model, case.objective)]
    for name, kernels in parts:
        if case.kernels not in kernels:
            common = sorted(frozenset.intersection(*(each for _, each in parts)))
            names = ", ".join(f'"{kind}"' for kind in common)
            yield "kernels", f'"{case.kernels}" cannot run {name} as it is here: use {names}'


def able_kernels(algorithm: type[Algorithm], model: ModelOptions) -> frozenset[str]:
    """Return the kernels that can run an algorithm with a model: compiled molecules give no embeddings."""
    able = kernels_of(algorithm)
    if algorithm.reads_embeddings and isinstance(model, FedGraphNNOptions):
        return able - {"compiled"}
    return able


def _refusal(algorithm: Algorithm, case: Case) -> str:
    """Return why the algorithm cannot train the case's model, or nothing."""
    try:
        algorithm.validate(case.model)
    except BadInput as error:
        return f"{algorithm.name} {' '.join(str(error).split())}"
    except (SystemExit, KeyboardInterrupt) as error:  # no Ctrl-C, which raises another
        return f"{algorithm.name}: hook validate raised {type(error).__name__}"
    return ""
