"""Methods by fedmpi and by the plain ones in `plain`, round by round.

``python bench/methods/against_plain.py [METHOD ...] [--rounds 10] [--optimizer adam] [--nudges 8]
[--curves]``. Both get the same graphs, initial parameters, participants, batches and dropout masks. After
each round everything that a client keeps, and its test accuracy, are compared. More runs of the plain method
tell what rounding alone does (all initial parameters one unit in the last place larger; in further nudges
each larger or smaller by chance), and what the released code does differently.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from plain import METHODS, Draws, Drop, Gin, Method, Setting, VirtualGin
from plain.adam import SingleAdam
from torch import Tensor
from torch_geometric.data import Data

from fedmpi.benchmarks.federation import Prepared, prepare
from fedmpi.client.client import Client
from fedmpi.client.trainee import FIRST_SAMPLED, Trainee
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.models.dropout import DropoutStreams
from fedmpi.registry.check import check_suite
from fedmpi.runs.signals import StopRequest
from fedmpi.seeds import Purpose, generator, key

SUITE = """
name = "methods/against-plain"
[case]
dataset = "PROTEINS"
partition = {{ name = "chunks", clients = 10 }}
{share}{network}
participation = 0.5
local_epochs = 2
batch_size = 32
rounds = {rounds}
optimizer = {optimizer}
algorithm = {algorithm}
"""

ADAM = '{{ name = "adam", lr = {lr}, weight_decay = 0.0005, eps = 0.01, state = "reset" }}'
ADAM_OPTIONS = {"weight_decay": 0.0005, "eps": 0.01}
"""A small eps makes steps of rounding where gradients are 0."""

OPTIMIZERS: dict[str, tuple[str, type[torch.optim.Optimizer], dict[str, float]]] = {
    "sgd": ('{{ name = "sgd", lr = {lr} }}', torch.optim.SGD, {}),
    "adam": (ADAM, torch.optim.Adam, ADAM_OPTIONS),
    "single-adam": (ADAM, SingleAdam, ADAM_OPTIONS),
}
"""As fedmpi's suites say it; torch's, and its options beside the step length."""

NETWORKS = {"fedvn": 'model = { name = "fedvn", hidden = 16, nodes = 4 }'}
"""Of methods with one of their own; fedmpi's has kernels of its own, too."""

LENGTHS = {
    "feddyn": 0.003, "fedrep": 0.001, "apfl": 0.001, "moon": 0.003, "fedproto": 0.0005,
    "pfedme": 0.0001, "fedfomo": 0.001, "fedas": 0.0001, "one-shot": 0.003,
    "flit": 0.003, "flit-plus": 0.003, "fedvn": 0.003,
}  # fmt: skip
"""Of a step: short enough for training to be stable, so that rounding stays rounding."""

OPTIONS: dict[str, dict[str, float]] = {
    "feddyn": {"alpha": 0.1},
    "fedrep": {"head_epochs": 3},
    "apfl": {"alpha": 0.5},
    "moon": {"mu": 1.0, "temperature": 0.5},
    "fedproto": {"attraction": 0.001},
    "pfedme": {"attraction": 15.0, "steps": 5, "outer_lr": 0.005, "beta": 1.5},
    "fedfomo": {"models": 9, "epsilon": 0.0},
    "fedas": {"alignment_epochs": 1},
    "one-shot": {"members": 3},
    "flit": {"gamma": 0.5},
    "flit-plus": {"gamma": 0.5, "confidence": 0.5, "smoothing": 1.0, "xi": 0.1, "epsilon": 0.1},
    "fedvn": {"decoupling": 0.1, "contrast": 1.0, "temperature": 0.1},
}

ALONE = ("fedrep", "fedas", "one-shot")
"""Methods that say themselves which layers are shared."""


def prepared(method: str, optimizer: str, rounds: int) -> Prepared:
    """Return fedmpi's run of a method, ready for its first round."""
    options = {"name": f'"{method}"', **{name: str(value) for name, value in OPTIONS[method].items()}}
    if method == "apfl":
        options["adaptive"] = "true"
    table = ", ".join(f"{name} = {value}" for name, value in options.items())
    share = "" if method in ALONE else 'share = "all"\n'
    text = SUITE.format(
        rounds=rounds,
        share=share,
        network=NETWORKS.get(method, 'kernels = "reference"\nmodel = { norm = "layer" }'),
        optimizer=OPTIMIZERS[optimizer][0].format(lr=LENGTHS[method]),
        algorithm=f"{{ {table} }}",
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.toml").write_text(text)
        (checked,) = check_suite(read(Path(folder) / "suite.toml", []))
    return prepare(checked, DataSource.from_environment(), World())


def graphs(run: Prepared, numbers: Any) -> list[Data]:
    """Return graphs of the dataset as PyG has them, with one-hot node labels as features."""
    (raw,) = run.raws
    topology, found = raw.topology, []
    assert raw.node_labels is not None
    receivers = np.repeat(np.arange(topology.num_nodes), np.diff(topology.row_ptr))
    for number in numbers:
        begin, end = topology.graph_ptr[number : number + 2]
        edges = slice(topology.row_ptr[begin], topology.row_ptr[end])
        labels = torch.from_numpy(np.array(raw.node_labels[begin:end, 0]))
        features = torch.nn.functional.one_hot(labels, raw.label_widths[0]).float()
        pairs = np.stack([topology.columns[edges], receivers[edges]]) - begin
        label = torch.tensor([int(raw.labels[number])])
        found.append(Data(x=features, edge_index=torch.from_numpy(pairs), y=label))
    return found


def draws(run: Prepared) -> Draws:
    """Return what fedmpi draws."""
    case, rounds = run.case, run.rounds

    def participants(round: int) -> list[int]:
        drawn = rounds.algorithm.participants(case.seed, round, len(rounds.clients), case.participation)
        return [int(client) for client in drawn]

    def batches(client: int, round: int, epoch: int) -> list[list[int]]:
        size = rounds.clients[client].num_train
        numbers = rounds.clients[client].batch_numbers(case, round, epoch)
        return [list(range(size)) if each is None else each.tolist() for each in numbers]

    def drop(client: int, round: int, step: int) -> Drop:
        streams = DropoutStreams(case.seed, client, round, step)
        return lambda x, layer: streams.apply(x, layer, case.model.dropout)

    def sampled(client: int, round: int) -> list[tuple[list[int], Drop]]:
        trainee = Trainee(rounds.clients[client], case, rounds.algorithm, round)
        numbers = [each.numbers for each in trainee.sample(1.0) if each.numbers is not None]
        drops = [drop(client, round, FIRST_SAMPLED + place) for place in range(len(numbers))]
        return [(own.tolist(), each) for own, each in zip(numbers, drops, strict=True)]

    def noise(client: int, round: int, step: int, shape: tuple[int, ...]) -> Tensor:
        stream = generator(key(case.seed, Purpose.PERTURBATION, client, round, step))
        return torch.from_numpy(stream.standard_normal(shape, dtype=np.float32))

    return Draws(participants, batches, drop, sampled, noise)


def tensors(client: Client, row: Tensor) -> list[Tensor]:
    """Return the parameters that are in a flat vector, in the module's order."""
    return [row[slot.start : slot.stop].view(slot.shape) for slot in client.model.slots]


def plain_model(client: Client) -> Any:
    """Return the client's model as the plain methods have it."""
    values, module = tensors(client, client.row), client.model.module
    layers = len(module.conv)
    (hidden, width), classes = values[0].shape, module.readout.out_features
    if hasattr(module, "virtual"):
        model: Any = VirtualGin(width, hidden, layers, classes, len(module.virtual.states))
    else:
        model = Gin(width, hidden, layers, classes)
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.copy_(value)
    return model


NAMES = {"own": "own model", "previous": "previous model", "last": "previous model", "begun": "begun model"}
"""Memories that are models, as `Method.parameters` names them."""


def kept(client: Client, server: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return what fedmpi's client has after a round, by the names of `Method.parameters`."""

    def packed(row: Tensor) -> Tensor:
        return torch.cat([each.reshape(-1) for each in tensors(client, row)])

    found = {"model": packed(client.row)}
    memory = {name: each for name, each in client.memory.items() if each is not None}
    if "share" in memory:
        found["alpha"] = memory["share"]
    for name in memory.keys() & NAMES.keys():
        found[NAMES[name]] = packed(memory[name])
    if "gradient" in memory:
        row = torch.zeros_like(client.row)
        client.shared.unpack(memory["gradient"], row)
        found["vector"] = packed(row)
    if "score" in client.told and not bool(client.told["score"].isnan().any()):
        found["score"] = client.told["score"]
    if "prototypes" in client.told:
        rows = client.told["prototypes"]
        found |= {f"prototype {label}": row for label, row in enumerate(rows) if not bool(row.isnan().any())}
    if "models" in client.told and "clients" not in client.told:
        for place, member in enumerate(client.told["models"]):
            row = torch.zeros_like(client.row)
            client.shared.unpack(member, row)
            found[f"member {place}"] = packed(row)
    if server and "affinity" in server:
        found["affinity"] = torch.from_numpy(server["affinity"][client.id]).float()
    return found


@dataclass(frozen=True)
class Compared:
    """A round.

    Attributes
    ----------
    parameters, rounding : float
        Largest difference of what clients keep: fedmpi from the equations, and these from themselves with
        initial parameters that are one unit in the last place larger.
    released : float
        Largest difference of a client's model: the released code from the equations.
    accuracy, rounded_accuracy : float
        Of a client's test accuracy, in the same way.
    means : tuple of float
        Mean test accuracy of the clients by fedmpi, the equations and the released code.
    """

    parameters: float
    rounding: float
    released: float
    accuracy: float
    rounded_accuracy: float
    means: tuple[float, ...]


def compare(method: str, optimizer: str, rounds: int, nudges: int = 1) -> Iterator[Compared]:
    """Run the rounds of a method by fedmpi, plain, nudged and as released; yield what was found of each."""
    run = prepared(method, optimizer, rounds)
    splits, clients = run.partition.clients, run.rounds.clients
    _, kind, further = OPTIMIZERS[optimizer]
    setting = Setting(
        draws(run),
        [graphs(run, split.train) for split in splits],
        [graphs(run, split.val) for split in splits],
        [graphs(run, split.test) for split in splits],
        run.case.local_epochs,
        partial(kind, lr=LENGTHS[method], **further),
        LENGTHS[method],
    )
    start = [plain_model(client) for client in clients.values()]
    plain = METHODS[method](setting, start, OPTIONS[method])
    nudged = [
        METHODS[method](setting, [nudge(model, number) for model in start], OPTIONS[method])
        for number in range(nudges)
    ]
    released = METHODS[method](replace(setting, released=True), start, OPTIONS[method])
    for round in range(rounds):
        _, report = run.rounds.run(round, stop=StopRequest(), checkpoint=False)
        assert report is not None
        for each in (plain, *nudged, released):
            each.round(round)
        server = run.rounds.algorithm.server_state()
        yield _compared(clients, server, report.results["test_accuracy"], plain, nudged, released)


def nudge(model: Gin, number: int) -> Gin:
    """Return a copy of which every parameter is the float32 beside its own: the larger one in nudge 0."""
    copy, stream = deepcopy(model), torch.Generator().manual_seed(number)
    with torch.no_grad():
        for parameter in copy.parameters():
            larger = torch.rand(parameter.shape, generator=stream) < (0.5 if number else 2.0)
            parameter.copy_(torch.nextafter(parameter, torch.where(larger, torch.inf, -torch.inf)))
    return copy


def _compared(
    clients: Mapping[int, Client],
    server: Mapping[str, Any],
    accuracy: Any,
    plain: Method,
    nudged: Sequence[Method],
    released: Method,
) -> Compared:
    apart, rounding, other = 0.0, 0.0, 0.0
    for number, client in clients.items():
        theirs = plain.parameters(number)
        apart = max(apart, largest(kept(client, server), theirs))
        rounding = max(rounding, *(largest(each.parameters(number), theirs) for each in nudged))
        models = [{"model": each["model"]} for each in (released.parameters(number), theirs)]
        other = max(other, largest(*models))

    def accuracies(method: Method) -> npt.NDArray[np.float64]:
        return np.array([method.accuracy(number) for number in clients])

    equations, theirs_released = accuracies(plain), accuracies(released)
    found = float(np.abs(accuracy - equations).max())
    rounded = max(float(np.abs(accuracies(each) - equations).max()) for each in nudged)
    means = tuple(float(np.mean(each)) for each in (accuracy, equations, theirs_released))
    return Compared(apart, rounding, other, found, rounded, means)


def largest(first: dict[str, Tensor], second: dict[str, Tensor]) -> float:
    """Return the largest difference of any number."""
    assert first.keys() == second.keys(), (first.keys(), second.keys())
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def main() -> None:
    """Compare, and print a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", metavar="METHOD", help=", ".join(METHODS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--optimizer", choices=tuple(OPTIMIZERS), default="sgd")
    parser.add_argument("--nudges", type=int, default=1)
    parser.add_argument("--curves", action="store_true", help="a line for every round")
    arguments = parser.parse_args()
    print(f"{'':9} {'parameters':>28} {'test accuracy':>19} {'mean test accuracy':>26}")
    print(
        f"{'':9} {'fedmpi rounding released':>28} {'fedmpi rounding':>19} {'fedmpi equations released':>26}"
    )
    for method in arguments.methods or METHODS:
        rows = list(compare(method, arguments.optimizer, arguments.rounds, arguments.nudges))
        for number, row in enumerate(rows, 1) if arguments.curves else ():
            print(line(f"  {number}", row))
        print(line(method, worst(rows)), flush=True)


def worst(rows: list[Compared]) -> Compared:
    """Return the largest differences of all rounds, and the means over the rounds."""
    names = ("parameters", "rounding", "released", "accuracy", "rounded_accuracy")
    largest_each = {name: max(getattr(row, name) for row in rows) for name in names}
    return Compared(**largest_each, means=tuple(np.mean([row.means for row in rows], axis=0)))


def line(name: str, row: Compared) -> str:
    """Return a row of the table."""
    apart = f"{row.parameters:8.1e} {row.rounding:8.1e} {row.released:10.1e}"
    accuracy = f"{row.accuracy:10.4f} {row.rounded_accuracy:8.4f}"
    return f"{name:9} {apart} {accuracy} {row.means[0]:8.4f} {row.means[1]:8.4f} {row.means[2]:8.4f}"


if __name__ == "__main__":
    main()
