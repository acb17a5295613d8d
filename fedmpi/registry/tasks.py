"""What fits the datasets and their labels, as far as their names tell (imports without torch)."""

from __future__ import annotations

from fedmpi.case.schema import Case
from fedmpi.datasets.loading import num_datasets
from fedmpi.datasets.names import family_of, members
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC
from fedmpi.models.options import MODELS
from fedmpi.partition.options import FedGraphNN
from fedmpi.tasks.base import KINDS, Task
from fedmpi.tasks.known import TASKS, usual_task


def task_named(task: str, dataset: str) -> type[Task] | None:
    """Return the task that a case names, or that of its dataset's nodes or edges; None for graphs' own."""
    family = family_of(members(dataset)[0])
    usual = (
        "" if family.examples == "graph" else usual_task(family.examples, family.task(members(dataset)[0]))
    )
    return TASKS.find(task or usual) if task or usual else None


def dataset_misfit(case: Case) -> tuple[str, str] | None:
    """Return the setting that cannot be with so many datasets, and what to do; None where all fit."""
    kind, name, count = case.partition.name, case.dataset.name, num_datasets(case.dataset)
    if count > 1 and not case.partition.several:
        here, instead = f"{name} is several", ""
        if name == SYNTHETIC:
            here, instead = f"here are {count} synthetic domains", " or dataset.synthetic.domains = 1"
        return "partition", f'"{kind}" deals out one dataset, {here}: use "per-dataset"{instead}'
    if SYNTHETIC not in members(name) and case.dataset.synthetic != SyntheticOptions():
        return "dataset.synthetic", f'is read for dataset "{SYNTHETIC}" only'
    return None


def task_misfit(case: Case) -> tuple[str, str] | None:
    """Return the first setting that the labels do not have, and what to do; None where all fit.

    The task says what they are, where it makes its own, else the dataset's family.
    """
    if case.task and (wrong := _named_task_misfit(case)):
        return "task", wrong
    if found := _examples_misfit(case):
        return found
    names = members(case.dataset.name)
    others = [name for name in names if _labels(case, name) != "classification"]
    split = case.partition.split if isinstance(case.partition, FedGraphNN) else "random"
    if not others:
        return _classes_misfit(case, split)
    name = others[0]
    kind = _labels(case, name)
    what = "binary labels" if kind == "multi-task" else "numbers"
    if len(names) > 1:
        return (
            "dataset.name",
            f"{name} has {what}, which are one dataset per case: it stands among {len(names)}",
        )
    if split == "stratified":
        return "partition.split", f'"stratified" needs one class per graph, {name} has {what}: use "random"'
    if not case.objective.supervised:
        return (
            "objective",
            f'"{case.objective.name}" is scored by one class per graph, {name} has {what}: use "supervised"',
        )
    if case.model.own_head:
        return "model.head", f'"own" is for graphs with one class each, {name} has {what}: use "dataset"'
    if kind != "regression" and case.dataset.targets != "raw":
        return "dataset.targets", f'"{case.dataset.targets}" is for regression, {name} has {what}: use "raw"'
    return None


def _examples_misfit(case: Case) -> tuple[str, str] | None:
    """Return the first setting that cannot be with examples that are graphs, nodes or edges."""
    kinds = {family_of(each).examples for each in members(case.dataset.name)}
    name = case.dataset.name
    if len(kinds) > 1:
        return "dataset.name", f"{name} joins datasets of graphs and of nodes: use one kind"
    (kind,) = kinds
    if case.dataset.egos is not None and kind != "node":
        return "dataset.egos", f"is for datasets whose nodes have labels, {name} has none: remove it"
    if getattr(case.model, "head_layers", 1) == 0 and (kind != "edge" or _labels(case, name) != "regression"):
        return "model.head_layers", "0, the dot product, predicts a number of an edge: use 1 or 2"
    if case.dataset.both_directions and kind != "edge":
        return "dataset.both_directions", f"is for labels of edges, {name} has none: remove it"
    if case.task and TASKS[case.task].of != kind:
        return "task", f'"{case.task}" is for labels of {TASKS[case.task].of}s, {name} has those of {kind}s'
    if kind == "graph":
        return None
    if not case.objective.supervised:
        return "objective", f'"{case.objective.name}" is for graphs, {name} has labels of {kind}s'
    if kind not in case.model.examples:
        return "model", _other_models(case, name, kind)
    if case.task and TASKS[case.task].relational and not case.model.relational:
        models = ", ".join(f'"{each}"' for each, options in MODELS.items() if options.relational)
        return (
            "model",
            f'"{case.task}" needs scores by relation, which "{case.model.name}" has not: use {models}',
        )
    if case.model.relational and case.dataset.both_directions:
        return (
            "dataset.both_directions",
            f'"{case.model.name}" takes every relation in both directions: remove it',
        )
    if case.model.relational and _labels(case, name) != "classification":
        return "model", f'"{case.model.name}" predicts relations, which {name} has not: use "gcn"'
    if case.model.own_head:
        return "model.head", f'"own" is for labels of graphs, {name} has those of {kind}s: use "dataset"'
    return None


def _other_models(case: Case, name: str, kind: str) -> str:
    """Return that the model predicts of something else than the dataset has labels of, and what to use."""
    predicted = " and ".join(f"{each}s" for each in sorted(case.model.examples))
    models = ", ".join(
        f'"{each}"'
        for each, options in MODELS.items()
        if kind in options.examples and not (options.relational and _labels(case, name) != "classification")
    )
    return f'"{case.model.name}" predicts of {predicted}, {name} has labels of {kind}s: use {models}'


def _labels(case: Case, name: str) -> str:
    """Return the kind of the labels that are predicted of a dataset."""
    own = case.task and _makes_labels(TASKS[case.task])
    return TASKS[case.task].labels if own else family_of(name).task(name)


def _makes_labels(task: type[Task]) -> bool:
    return task.examples.__func__ is not Task.examples.__func__  # type: ignore[attr-defined]


def _named_task_misfit(case: Case) -> str:
    """Return why the task that the case names cannot be, or nothing."""
    task, name = TASKS[case.task], case.dataset.name
    if task.supervised != case.objective.supervised:
        return f'"{case.task}" and objective "{case.objective.name}" do not go together: leave task out'
    kinds = {family_of(each).task(each) for each in members(name)}
    if not _makes_labels(task) and kinds != {task.labels}:
        theirs = " and ".join(sorted(KINDS[each] for each in kinds))
        return (
            f'"{case.task}" needs {KINDS[task.labels]}, dataset {name} has {theirs}: remove the setting '
            "`task`, or let the task make its labels in `examples`"
        )
    return ""


def _classes_misfit(case: Case, split: str) -> tuple[str, str] | None:
    name = case.dataset.name
    if split == "scaffold":
        return "partition.split", f'"scaffold" needs molecules read from SMILES, which {name} has not'
    if case.dataset.targets != "raw":
        return "dataset.targets", f'"{case.dataset.targets}" is for regression, {name} has classes: use "raw"'
    return None
