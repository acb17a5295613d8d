"""Checks of an algorithm's first answers, equal on all ranks, before a run folder is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch.nn import Module

from fedmpi.algorithms import program
from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation
from fedmpi.comm.world import World
from fedmpi.errors import BadInput, RankFailed
from fedmpi.exchange import attacks, links, privacy, schedule
from fedmpi.exchange.dropouts import Dropouts
from fedmpi.exchange.totals import MOST_CLIENTS
from fedmpi.models.flat import FROZEN, FlatModel, statistics_of
from fedmpi.models.options import Shape
from fedmpi.objectives.unsupervised import network_of
from fedmpi.programs.hook_checks import digest
from fedmpi.programs.hooks import FLAGS, Hooks
from fedmpi.store.schema import CLIENT_ID, GENERATED_NODES, MEASUREMENTS, RESULTS
from fedmpi.tasks.base import Task

Tensors = dict[str, tuple[int, ...]]
"""Shapes of tensors by name."""


def check_start(case: Case, hooks: Hooks, federation: Federation, world: World) -> None:
    """Refuse an algorithm whose hooks return what they must not, or differ between ranks.

    Parameters
    ----------
    case : Case
    hooks : Hooks
        The algorithm's checked hooks.
    federation : Federation
        Clients, weights and tensor shapes that the hooks are called with.
    world : World
        All ranks compare their answers with rank 0's.

    Raises
    ------
    BadInput
        On every rank.
    """
    mine = world.together(partial(_answers, case, hooks, federation))
    own = {field.name for field in hooks.fields()}
    others = (*federation.task.fields, CLIENT_ID, *links.fields_of(case, hooks))
    if taken := sorted(own & {field.name for field in others}):
        raise BadInput(
            f'algorithm {hooks.name}: hook fields names a field "{taken[0]}", which exists already: rename it'
        )
    theirs = world.agree(lambda: mine)

    def compare() -> None:
        for hook, answer in mine.items():
            if theirs[hook] != answer:
                who = f"task {federation.task.name}" if hook == "examples" else f"algorithm {hooks.name}"
                raise BadInput(
                    f"{who}: {hook} differs between rank {world.rank} and rank 0: "
                    "hooks and flags must depend on arguments and options alone"
                )

    world.together(compare)


def _answers(case: Case, hooks: Hooks, federation: Federation) -> Mapping[str, float]:
    """Return a digest of what each hook that every rank calls on its own returns."""
    _refuse_fields(federation.task)
    Dropouts(case.reduction.dropouts, case.seed, federation.num_clients)
    if case.record == "protocol" and federation.num_clients > MOST_CLIENTS:
        raise BadInput(f'record = "protocol": counts are summed over at most {MOST_CLIENTS} clients')
    if case.plugin:
        _refuse_unseeded(case, federation.shapes)
    clients = federation.num_clients
    try:
        answers = {
            "weights": digest(hooks.weights(federation.weights)),
            "groups": digest(hooks.groups(clients)),
            "participants": digest(hooks.participants(case.seed, 0, clients, case.participation)),
            "messages": digest(*(_declared(case, hooks, each) for each in _classes(federation))),
            "fields": digest(hooks.fields()),
            "examples": digest(*_predicted(federation)),
        }
        for flag in FLAGS:
            value = getattr(hooks, flag)  # a set's text differs between processes
            answers[flag] = digest(sorted(value) if isinstance(value, frozenset) else value)
        names = [split.name for split in federation.partition.clients]
        shared = _shared(case, hooks, names, federation.shapes)
        _refuse_unfit(case, hooks, federation, shared)
        kept = digest(*_kept(case, hooks, federation, shared))
        return {**answers, "shares": digest(shared), "memory": kept}
    except RankFailed as error:
        raise BadInput(str(error)) from error


def _refuse_unfit(case: Case, hooks: Hooks, federation: Federation, shared: Tensors) -> None:
    """Raise BadInput for attackers, clipping or noise that these clients and this model cannot have."""
    clients = federation.num_clients
    attacks.refuse_unfit(case, clients)
    schedule.refuse_endless(case, federation, 4 * sum(map(math.prod, shared.values())))
    module = network_of(case.objective, case.model, federation.shapes[0])
    parameters = dict(module.named_parameters())
    if len({_declared(case, hooks, each) for each in _classes(federation)}) > 1:
        raise BadInput(
            f"algorithm {hooks.name}: its messages depend on the classes, in which clients differ: choose "
            "datasets of as many classes"
        )
    if reason := _unlike(case, hooks, federation):
        raise BadInput(f"algorithm {hooks.name} {reason}")
    shapes = [shape for name, shape in shared.items() if name in parameters]
    if not shapes and (case.compression.name, case.down_compression.name) != ("none", "none"):
        raise BadInput(
            f"algorithm {hooks.name}: hook shares leaves no parameter to compress: use the compression "
            '"none", up and down'
        )
    sampled = len(hooks.participants(case.seed, 0, clients, case.participation))
    kept = sorted(_floats(module).keys() - shared.keys())
    if federation.partition.population is not None and kept:
        raise BadInput(
            f'partition "population": {kept[0]} stays on a client, which is gone after its round: use '
            'share = "all" and an algorithm that shares every tensor'
        )
    size = privacy.elements(case, shapes)
    privacy.refuse_unfit(case, size, sampled, [name for name in shared if name not in parameters])


def _unlike(case: Case, hooks: Hooks, federation: Federation) -> str:
    """Return what clients cannot exchange because of their data, or nothing."""
    classes = federation.shapes[0].classes
    declared = [hooks.messages(case.model, classes), hooks.tells(case.model, classes)]
    if not federation.num_public and any("public" in each.shape for one in declared for each in one.values()):
        return "exchanges values of public graphs, of which there are none: set the case's option `public`"
    if not hooks.prepares:
        return ""
    if len({shape.width for shape in federation.shapes}) > 1:
        return "has clients work together before round 1, and their features differ: use one dataset"
    if hooks.tasks and any(split.nodes is None for split in federation.partition.clients):
        return (
            'is for parts of one graph, and these clients have graphs: use the partition "louvain" or "metis"'
        )
    return ""


def _declared(case: Case, hooks: Hooks, classes: int) -> str:
    """Return what the algorithm declares as messages and as told, as text."""
    found = hooks.messages(case.model, classes), hooks.tells(case.model, classes)
    return str([list(each.items()) for each in found])


def _kept(case: Case, hooks: Hooks, federation: Federation, shared: Tensors) -> list[str]:
    """Return what the algorithm declares that clients keep, as text."""
    module = network_of(case.objective, case.model, federation.shapes[0])
    names = tuple(name for name, _ in module.named_parameters())
    tensors = program.Tensors(names, tuple(name for name in names if name in shared))
    return [str(sorted(found.items())) for found in (hooks.memory(tensors), hooks.moments(tensors))]


def _classes(federation: Federation) -> list[int]:
    """Return the numbers of classes that models of clients have, each once, ascending."""
    return sorted({shape.classes for shape in federation.shapes})


def _predicted(federation: Federation) -> list[object]:
    """Return what a plug-in's task predicts and is judged by; nothing for fedmpi's own."""
    task = federation.task
    if type(task).__module__.startswith("fedmpi."):
        return []
    return [task.metrics, np.asarray(task.lengths), *(np.asarray(raw.labels) for raw in federation.raws)]


def _refuse_fields(task: Task) -> None:
    """Raise BadInput where a field of a task is not the only one of its name."""
    taken = {
        field.name
        for field in (*RESULTS, *MEASUREMENTS, CLIENT_ID, GENERATED_NODES, attacks.ATTACKER, privacy.EPSILON)
    }
    for field in task.fields:
        if field.name in taken:
            raise BadInput(f'task {task.name}: two fields of a record are named "{field.name}": rename one')
        taken.add(field.name)


def _refuse_unseeded(case: Case, shapes: Sequence[Shape]) -> None:
    """Raise BadInput where a network of a plug-in starts from other numbers than those of the seed."""
    for shape in dict.fromkeys(shapes):
        starts = []
        for before in (1, 2):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(before)
                model = FlatModel(network_of(case.objective, case.model, shape))
                model.initialise(case.seed, 0)
                starts.append({name: value.clone() for name, value in model.module.state_dict().items()})
        for name, value in starts[0].items():
            if not torch.equal(value, starts[1][name]):
                raise BadInput(
                    f"model {case.model.name}: {name} is drawn where its module is made, not from the seed: "
                    "draw it in a method reset_parameters() of that module"
                )


def _shared(case: Case, hooks: Hooks, names: Sequence[str], shapes: Sequence[Shape]) -> Tensors:
    """Return the tensors that leave the clients; every client has them, in one shape.

    Parameters
    ----------
    names, shapes : sequence
        Of all clients.

    Raises
    ------
    BadInput
        None leaves, or one of them is not the same for all.
    """
    tensors = {
        shape: _floats(network_of(case.objective, case.model, shape)) for shape in dict.fromkeys(shapes)
    }
    by_shape = {
        shape: {name: size for name, size in found.items() if hooks.shares(name, case.share)}
        for shape, found in tensors.items()
    }
    first = by_shape[shapes[0]]
    if not first:
        raise BadInput(
            f"algorithm {hooks.name}: hook shares leaves no tensor of the model to share; share one"
        )
    keeps_some = not hooks.reads_share and hooks.communicates  # else it is FedAvg
    if keeps_some and len(first) == len(tensors[shapes[0]]):
        raise BadInput(
            f"algorithm {hooks.name}: every layer of model {case.model.name} is shared: choose "
            "a model with layers that it keeps on the clients (docs/algorithms.md)"
        )
    for name, shape in zip(names, shapes, strict=True):
        other = by_shape[shape]
        for tensor in {**first, **other}:
            if first.get(tensor) != other.get(tensor):
                raise BadInput(
                    f"algorithm {hooks.name}: hook shares lets {tensor} leave, which is "
                    f"{_size(first, tensor)} for client {names[0]} and {_size(other, tensor)} for client "
                    f"{name}: what is shared must not depend on a client's features, of nodes or edges, and "
                    "classes"
                )
    return first


def _floats(module: Module) -> Tensors:
    """Return the tensors of a network that may leave a client."""
    return {
        name: tuple(tensor.shape)
        for name, tensor in [*module.named_parameters(), *statistics_of(module).items()]
        if tensor.is_floating_point() and not name.startswith(FROZEN)
    }


def _size(tensors: Tensors, name: str) -> str:
    return " x ".join(map(str, tensors[name])) or "a number" if name in tensors else "missing"
