"""What an algorithm needs of its case, by its capabilities (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities import (
    Mends,
    RowAggregate,
    Splits,
    kernels_of,
    overrides,
)
from fedmpi.case.privacy import Private
from fedmpi.case.reductions import ClippedOptions, LightSecAggOptions, SecAggPlusOptions, SecureOptions
from fedmpi.case.schema import Case
from fedmpi.datasets.loading import num_datasets
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import ACCURACY
from fedmpi.models.options import FedGraphNNOptions, ModelOptions
from fedmpi.registry.tasks import task_named
from fedmpi.secure.neighbours import SECURITY_BITS, Degree, Risk, least_degree
from fedmpi.tasks.base import kernels_of as kernels_of_task
from fedmpi.tasks.known import classifies

MODELS_CLIP = 8.0
"""Least clip under which models are averaged; parameters are smaller, running variances seldom larger."""


def unmet(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting that the algorithm cannot honour, and what to do; None where all fit."""
    name, reduction = algorithm.name, case.reduction
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
    if overrides(type(algorithm), "tells") and reduction.secret:
        return "reduction", f'the server of {name} sees what single clients send: use "exact"'
    if isinstance(algorithm, Mends) and (wrong := _unmended(algorithm, case)):
        return wrong
    if reason := _refusal(algorithm, case):
        return "algorithm", reason
    if "groups" in algorithm.decides and case.participation < 1:
        return "participation", f"{name} groups all clients in every round: it must be 1"
    if isinstance(reduction, ClippedOptions) and (wrong := _unclippable(algorithm, reduction)):
        return wrong
    if case.record == "protocol" and (reason := _unrecordable(algorithm, case)):
        return "record", reason
    needs_rows = isinstance(algorithm, RowAggregate) or "means" in algorithm.decides
    if needs_rows and case.reduction.name != "exact":
        return (
            "reduction",
            f"{name} needs every client's update and computes no sum: remove the setting `reduction`",
        )
    if reason := _unfit_for_dropouts(algorithm, case):
        return "reduction.dropouts", reason
    reason = _thin_ring(algorithm, case, reduction) if isinstance(reduction, SecAggPlusOptions) else ""
    return ("reduction.neighbours", reason) if reason else None


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


def _unmended(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Refuse data that cannot be mended, and protection that what clients show each other would undo."""
    name = algorithm.name
    if reason := _other_task(frozenset({"node-classification"}), case):
        return "task", reason
    if case.dataset.egos is not None:
        return "dataset.egos", f"{name} mends parts of one graph: remove it"
    if case.reduction.secret:
        return "reduction", f'clients of {name} show generated features before round 1: use "exact"'
    if isinstance(case.privacy, Private):
        return "privacy", f"{name} shows features before round 1, without noise: remove it"
    return None


def able_kernels(algorithm: type[Algorithm], model: ModelOptions) -> frozenset[str]:
    """Return the kernels that can run an algorithm with a model: compiled molecules give no embeddings."""
    able = kernels_of(algorithm)
    if algorithm.reads_embeddings and isinstance(model, FedGraphNNOptions):
        return able - {"compiled"}
    return able


def _thin_ring(algorithm: Algorithm, case: Case, reduction: SecAggPlusOptions) -> str:
    """Return why SecAgg+'s neighbours are too few for the colluders that a case allows, or nothing."""
    number = case.partition.num_clients(num_datasets(case.dataset))
    clients = len(algorithm.participants(case.seed, 0, number, case.participation))
    if not reduction.colluders or reduction.neighbours >= clients - 1:
        return ""
    gone = reduction.dropouts.share(clients)
    ring = Degree.of(reduction.neighbours, reduction.threshold)
    if Risk.of(clients, reduction.colluders, gone, ring).is_safe(SECURITY_BITS):
        return ""
    best = least_degree(clients, reduction.colluders, gone)
    instead = 'use "secagg"'
    if best is not None:
        threshold = (best.threshold - 0.5) / (best.neighbours + 1)
        instead = f"use neighbours = {best.neighbours} with threshold = {threshold:.3f}"
    return (
        f"{reduction.neighbours} of {clients - 1} with threshold = {reduction.threshold:g} are not safe if "
        f"{100 * reduction.colluders:g} % collude and {100 * gone:g} % drop out: {instead}"
    )


def _unfit_for_dropouts(algorithm: Algorithm, case: Case) -> str:
    """Return why clients cannot drop out of the case's rounds as it asks, or nothing."""
    name, dropouts = algorithm.name, case.reduction.dropouts
    late = [each.round for each in dropouts.schedule if each.round > case.rounds]
    if late:
        return f"round {late[0]} of the schedule is behind the last, {case.rounds}"
    if not dropouts.steps:
        return ""
    if not algorithm.communicates:
        return f"{name} sends no updates: remove it"
    needs_all = algorithm.decides & {"weights", "means"} or overrides(type(algorithm), "tells")
    by_rows = isinstance(algorithm, Splits) and algorithm.wants_rows
    if needs_all or by_rows or isinstance(algorithm, RowAggregate):
        return f"{name} needs something of every participant: remove it"
    if "training" in dropouts.steps and (isinstance(algorithm, Splits) or "groups" in algorithm.decides):
        return f'{name} groups clients by what they report after training: use "shares" or a later step'
    return ""


def _unclippable(algorithm: Algorithm, reduction: ClippedOptions) -> tuple[str, str] | None:
    """Refuse algorithms whose sums a clipped reduction cannot hold, or a secret one must not show."""
    name, kind = algorithm.name, f'"{reduction.name}"'
    if "groups" in algorithm.decides and reduction.clip < MODELS_CLIP:
        text = f"{name} averages models, not updates, and {kind} cuts their elements: {MODELS_CLIP:g} or more"
        return "reduction.clip", text
    if "weights" in algorithm.decides:
        return "reduction", f'the weights of {name} can exceed 1, {kind} needs a sum of 1: use "exact"'
    return _unmasked(algorithm, reduction) if isinstance(reduction, SecureOptions) else None


def _unmasked(algorithm: Algorithm, reduction: SecureOptions) -> tuple[str, str] | None:
    """Refuse what a secure sum would not hide, and numbers of clients that it cannot hold."""
    name, kind, active = algorithm.name, f'"{reduction.name}"', reduction.server == "active"
    if isinstance(algorithm, Splits) and algorithm.wants_rows:
        return "reduction", f'{name} compares single updates, which {kind} hides: use "gcfl-plus" or "exact"'
    if isinstance(algorithm, Splits) and active:
        text = f"{name} sums the same updates again with other weights, when the server says so"
        return "reduction.server", f'{text}: use "semi-honest"'
    if isinstance(reduction, LightSecAggOptions) and reduction.colluders >= reduction.threshold:
        text = "it must be below the threshold: clients that do not collude lift the masks"
        return "reduction.colluders", text
    if active and reduction.threshold <= 2 / 3:
        text = "an active server could show two lists of survivors: it must be above 2/3, such as 0.7"
        return "reduction.threshold", text
    if find_spec("cryptography") is None:
        return "reduction", f"{kind} needs the extra secure: pip install 'fedmpi[secure]'"
    return None


def _unrecordable(algorithm: Algorithm, case: Case) -> str:
    """Return why a run cannot do without values of single clients on rank 0, or nothing."""
    if not case.reduction.secret:
        return f'"protocol" is for secure sums, "{case.reduction.name}" hides nothing: use "full"'
    if isinstance(case.privacy, Private):
        return f'"{case.privacy.name}" privacy does not count sums of figures, without noise: use "full"'
    if case.reduction.dropouts.steps:
        return 'figures are summed over all participants, none may drop out: use "full"'
    own = overrides(type(algorithm), "fields") or overrides(type(algorithm), "messages")
    if own or algorithm.decides or algorithm.numbers or isinstance(algorithm, Splits):
        return f'{algorithm.name} needs reports of single clients: use "full"'
    if algorithm.pools or not algorithm.communicates:
        return f'{algorithm.name} has no sums over clients: use "full"'
    task = task_named(case.task, case.dataset.name)
    if not case.objective.supervised or not (
        classifies(case.task, case.dataset.name) or (task is not None and ACCURACY in task.metrics)
    ):
        return 'hits of classes can be summed, the scores of this task cannot: use "full"'
    return ""


def _refusal(algorithm: Algorithm, case: Case) -> str:
    """Return why the algorithm cannot train the case's model, or nothing."""
    try:
        algorithm.validate(case.model)
    except BadInput as error:
        return f"{algorithm.name} {' '.join(str(error).split())}"
    except (SystemExit, KeyboardInterrupt) as error:  # no Ctrl-C, which raises another
        return f"{algorithm.name}: hook validate raised {type(error).__name__}"
    return ""


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
