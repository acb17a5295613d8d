"""What fits the datasets and their labels, as far as their names tell (imports without torch)."""

from __future__ import annotations

from collections.abc import Callable

from fedmpi.case.schema import Case, Misfits
from fedmpi.datasets.loading import num_datasets
from fedmpi.datasets.names import family_of, members
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC
from fedmpi.models.options import MODELS, ModelOptions
from fedmpi.partition.options import FedGraphNN
from fedmpi.tasks.base import KINDS, Task
from fedmpi.tasks.known import TASKS, usual_task


def task_named(task: str, dataset: str) -> type[Task] | None:
    """Return the task that a case names, or that of its dataset's nodes or edges; None for graphs' own."""
    first = members(dataset)[0]
    family = family_of(first)
    if not task and family.examples != "graph":
        task = usual_task(family.examples, family.task(first))
    return TASKS.find(task) if task else None


def misfits(case: Case) -> Misfits:
    """Yield the settings that the datasets and their labels do not have, and what to do.

    The task says what labels are, where it makes its own, else the dataset's family.
    """
    yield from _of_datasets(case)
    yield from _of_task(case)
    yield from _of_examples(case)
    yield from _of_labels(case)


def _of_datasets(case: Case) -> Misfits:
    """Yield the settings that cannot be with so many datasets, and what to do."""
    kind, name, count = case.partition.name, case.dataset.name, num_datasets(case.dataset)
    if count > 1 and not case.partition.several:
        here, instead = f"{name} is several", ""
        if name == SYNTHETIC:
            here, instead = f"here are {count} synthetic domains", " or dataset.synthetic.domains = 1"
        yield "partition", f'"{kind}" deals out one dataset, {here}: use "per-dataset"{instead}'
    if SYNTHETIC not in members(name) and case.dataset.synthetic != SyntheticOptions():
        yield "dataset.synthetic", f'is read for dataset "{SYNTHETIC}" only'


def _of_task(case: Case) -> Misfits:
    """Yield that the task that the case names cannot be, and what to do."""
    if not case.task:
        return
    task, name = TASKS[case.task], case.dataset.name
    if task.supervised != case.objective.supervised:
        text = f'"{case.task}" and objective "{case.objective.name}" do not go together: leave task out'
        yield "task", text
    kinds = {family_of(each).task(each) for each in members(name)}
    if not _makes_labels(task) and kinds != {task.labels}:
        theirs = " and ".join(sorted(KINDS[each] for each in kinds))
        text = f'"{case.task}" needs {KINDS[task.labels]}, dataset {name} has {theirs}'
        yield "task", f"{text}: remove the setting `task`, or let the task make its labels in `examples`"


def _of_examples(case: Case) -> Misfits:
    """Yield the settings that cannot be with examples that are graphs, nodes or edges, and what to do."""
    name, model = case.dataset.name, case.model
    kinds = {family_of(each).examples for each in members(name)}
    if len(kinds) > 1:
        yield "dataset.name", f"{name} joins datasets of graphs and of nodes: use one kind"
    (kind,) = kinds
    if case.dataset.egos is not None and kind != "node":
        yield "dataset.egos", f"is for datasets whose nodes have labels, {name} has none: remove it"
    if getattr(model, "head_layers", 1) == 0 and (kind != "edge" or _labels(case, name) != "regression"):
        yield "model.head_layers", "0, the dot product, predicts a number of an edge: use 1 or 2"
    if case.dataset.both_directions and kind != "edge":
        yield "dataset.both_directions", f"is for labels of edges, {name} has none: remove it"
    if case.task and TASKS[case.task].of != kind:
        yield "task", f'"{case.task}" is for labels of {TASKS[case.task].of}s, {name} has those of {kind}s'
    edges = all(family_of(each).edge_attributes for each in members(name))
    for key, text in model.misfits(kind, edges):
        yield f"model.{key}", text
    if kind == "graph":
        return
    if not case.objective.supervised:
        yield "objective", f'"{case.objective.name}" is for graphs, {name} has labels of {kind}s'
    if kind not in model.examples:
        predicted = " and ".join(f"{each}s" for each in sorted(model.examples))
        others = _models(lambda one: kind in one.examples and (not one.relational or _relations(case)))
        yield "model", f'"{model.name}" predicts of {predicted}, {name} has labels of {kind}s: use {others}'
    if case.task and TASKS[case.task].relational and not model.relational:
        text = f'"{case.task}" needs scores by relation, which "{model.name}" has not'
        yield "model", f"{text}: use {_models(lambda one: one.relational)}"
    if model.relational and case.dataset.both_directions:
        text = f'"{model.name}" takes every relation in both directions: remove it'
        yield "dataset.both_directions", text
    if model.relational and not _relations(case):
        yield "model", f'"{model.name}" predicts relations, which {name} has not: use "gcn"'
    if model.own_head:
        yield "model.head", f'"own" is for labels of graphs, {name} has those of {kind}s: use "dataset"'


def _relations(case: Case) -> bool:
    return _labels(case, case.dataset.name) == "classification"


def _models(able: Callable[[type[ModelOptions]], bool]) -> str:
    """Return the names of the models that can do something."""
    return ", ".join(f'"{each}"' for each, options in MODELS.items() if able(options))


def _labels(case: Case, name: str) -> str:
    """Return the kind of the labels that are predicted of a dataset."""
    own = case.task and _makes_labels(TASKS[case.task])
    return TASKS[case.task].labels if own else family_of(name).task(name)


def _makes_labels(task: type[Task]) -> bool:
    return task.examples.__func__ is not Task.examples.__func__  # type: ignore[attr-defined]


def _of_labels(case: Case) -> Misfits:
    """Yield the settings that cannot be with classes, numbers, or several labels of an example."""
    names = members(case.dataset.name)
    others = [name for name in names if _labels(case, name) != "classification"]
    name = others[0] if others else case.dataset.name
    kind = _labels(case, name) if others else "classification"
    what = {"classification": "classes", "multi-task": "binary labels"}.get(kind, "numbers")
    split = case.partition.split if isinstance(case.partition, FedGraphNN) else "random"
    if others and len(names) > 1:
        text = f"{name} has {what}, which are one dataset per case: it stands among {len(names)}"
        yield "dataset.name", text
    if others and split == "stratified":
        yield "partition.split", f'"stratified" needs one class per graph, {name} has {what}: use "random"'
    if others and not case.objective.supervised:
        text = f'"{case.objective.name}" is scored by one class per graph, {name} has {what}'
        yield "objective", f'{text}: use "supervised"'
    if others and case.model.own_head:
        yield "model.head", f'"own" is for graphs with one class each, {name} has {what}: use "dataset"'
    if not others and split == "scaffold" and not family_of(names[0]).scaffolds:
        yield "partition.split", f'"scaffold" needs molecules read from SMILES, which {name} has not'
    if kind != "regression" and case.dataset.targets != "raw":
        yield "dataset.targets", f'"{case.dataset.targets}" is for regression, {name} has {what}: use "raw"'
