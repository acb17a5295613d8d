"""An algorithm as the engine calls it: every hook's name is noted, and what it returns is checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Algorithm, Floats, Ints, Model
from fedmpi.algorithms.program import Conversation, Evaluated, Memory, Message, Offers, Request, Size, Tensors
from fedmpi.errors import RankFailed
from fedmpi.models.options import ModelOptions
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_calls import HookCalls
from fedmpi.programs.position import Position
from fedmpi.store.schema import Field

FLAGS = (
    "name",
    "communicates",
    "pools",
    "reads_share",
    "sends",
    "numbers",
    "central",
    "decides",
    "asks",
    "reads_outputs",
)
"""Attributes of an algorithm that must be equal on all ranks."""


class Training(Protocol):
    """A client in a round, beside what its program sees of it (`fedmpi.algorithms.program.Client`)."""

    @property
    def received(self) -> Any:
        """The shared part of the model as it came, which no program changes."""

    @property
    def done(self) -> Sequence[object]:
        """The model's passes."""

    def run_epochs(self) -> None:
        """Train as FedAvg does."""

    def report(self) -> tuple[npt.NDArray[np.uint8], tuple[float, ...], bool]:
        """Return its messages as bytes, its numbers, and whether something is not finite."""


class Deciding(Protocol):
    """The server in a round, beside what its program sees of it (`fedmpi.algorithms.program.Server`)."""

    def refuse_undeclared(self, request: Request) -> None:
        """Raise Breach for a request that the class does not declare."""

    def check(self) -> None:
        """Raise Breach where something that the class declares was not decided."""


class Hooks:
    """Checked calls of an algorithm's hooks.

    Parameters
    ----------
    algorithm : Algorithm
    num_clients : int
        Of the federation.
    where : Position
        Of this rank.

    Attributes
    ----------
    prepares : bool
        Whether clients have a program before round 1.
    central : bool
        Whether rank 0 updates the models of all groups.
    is_plugin : bool
        Whether its second round is watched: see `HookCalls`.

    Raises
    ------
    RankFailed
        By any method: see `HookCalls`.
    """

    def __init__(self, algorithm: Algorithm, num_clients: int, where: Position) -> None:
        self._calls = HookCalls(algorithm, num_clients, where)
        self._num_clients, self.where = num_clients, where
        self.name, self.communicates = algorithm.name, algorithm.communicates
        self.pools, self.reads_share = algorithm.pools, algorithm.reads_share
        self.sends, self.numbers = tuple(algorithm.sends), tuple(algorithm.numbers)
        self.decides, self.asks = frozenset(algorithm.decides), frozenset(algorithm.asks)
        self.central = algorithm.central or bool(self.decides & {"moves", "mixes"})
        kind = type(algorithm)
        self.change = self._change if kind.change is not Algorithm.change else None
        self.evaluated = self._evaluated if kind.evaluated is not Algorithm.evaluated else None
        self.predict = self._predict if kind.predict is not Algorithm.predict else None
        self._trains = kind.train is not Algorithm.train
        self.renews = kind.trained is not Algorithm.trained
        self.prepares = kind.prepare is not Algorithm.prepare
        self.reads_outputs, self.tasks = algorithm.reads_outputs, algorithm.tasks
        self.is_plugin = not self._calls.is_own
        self._first_round = -1
        self._declared: Mapping[str, npt.NDArray[Any]] = {}

    @property
    def averages_models(self) -> bool:
        """Whether shared tensors are averaged instead of their updates."""
        return bool(self.decides & {"groups", "mixes"})

    def prepare(self, client: object) -> Offers:
        """Run a client's program before round 1, yielding what it offers: see `Algorithm.prepare`."""
        self._calls.watching = self.is_plugin
        yield from self._calls.talk("prepare", client)

    def disagreed(self) -> RankFailed:
        """Return the error where clients do not take the same exchanges before round 1, on every rank."""
        text = "takes other exchanges, or rows of other widths, on some clients than on others"
        error = self._calls.failed("prepare", text)
        error.agreed = True
        return error

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """See `Algorithm.memory`."""
        return self._calls.ask_once("memory", (tensors,), checks.memory, tensors, key=tensors)

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """See `Algorithm.moments`."""
        return self._calls.ask_once("moments", (tensors,), checks.moments, tensors, key=tensors)

    def train(self, client: Training) -> None:
        """Run a client's program: see `Algorithm.train`."""
        if self._trains:
            before = client.received._version
            self._calls.call("train", client)
            if client.received._version != before:
                raise self._calls.failed("train", "changed `received`")
        else:
            client.run_epochs()
        if not client.done:
            raise self._calls.failed("train", "took no pass at the model: call run_epochs or gradient")

    def after_training(self, client: Training) -> None:
        """See `Algorithm.trained`."""
        if self.renews:
            self._calls.call("trained", client)

    def reported(self, client: Training) -> tuple[npt.NDArray[np.uint8], tuple[float, ...], bool]:
        """Return what a client's program sent: see `Training.report`."""
        return self._calls.checked("trained" if self.renews else "train", client.report)

    def goes_on(self) -> None:
        """Note that the program that runs has called a verb."""
        if self.where.hook is not None:
            self.where.hook = (self.where.hook[0],)

    def _change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """See `Algorithm.change`."""
        before = received._version
        self._calls.call("change", gradient, model, received, memory)
        if received._version != before:
            raise self._calls.failed("change", "changed `received`: only `gradient` may change")

    def _evaluated(self, client: Evaluated) -> Any:
        """See `Algorithm.evaluated`."""
        before = client.model._version, _versions(client.memory)
        found = self._calls.ask("evaluated", (client,), checks.like, client.model)
        if client.model._version != before[0]:
            raise self._calls.failed("evaluated", "changed `client.model`: change a clone of it")
        if _versions(client.memory) != before[1]:
            raise self._calls.failed("evaluated", "changed `client.memory`: only train and trained may")
        return found

    def _predict(self, client: Evaluated, count: int) -> npt.NDArray[np.int64] | None:
        """See `Algorithm.predict`; `count` is the number of held-out graphs."""
        return self._calls.ask("predict", (client,), checks.classes, count)

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """See `Algorithm.messages`."""
        return self._calls.ask_once("messages", (model, classes), checks.messages, key=classes)

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """See `Algorithm.tells`."""
        return self._calls.ask_once("tells", (model, classes), checks.told, key=classes)

    def decide(self, server: Deciding) -> Conversation:
        """Run the server's program, yielding what it asks for: see `Algorithm.decide`."""
        talk, answer = self._calls.talk("decide", server), None
        while True:
            try:
                request = talk.send(answer)
            except StopIteration as ended:
                returned = ended.value
                break
            self._calls.checked("decide", server.refuse_undeclared, request)
            answer = yield request
        if returned is not None:
            raise self._calls.failed("decide", f"returned {type(returned).__name__}: it returns nothing")
        self._calls.checked("decide", server.check)

    def remark(self, participants: int, one_step: bool) -> str:
        """See `Algorithm.remark`."""
        return self._calls.ask("remark", (participants, one_step), checks.text)

    def begin(self, trained: int, num_clients: int) -> None:
        """See `Algorithm.begin` and `Algorithm.server_memory`."""
        self._calls.call("begin", trained, num_clients)
        kept = self._calls.ask("server_memory", (trained, num_clients), checks.state)
        self._calls.algorithm.server = {name: array.copy() for name, array in kept.items()}
        self._declared = kept

    def server_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the server keeps, as a checkpoint has it."""
        return self._calls.checked("server_memory", checks.kept, self._calls.algorithm.server, self._declared)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take back what the server kept."""
        self._calls.algorithm.server = {name: np.array(arrays[name]) for name in self._declared}

    def watch(self) -> None:
        """Watch what follows: see `HookCalls`."""
        self._calls.watching = True

    def raised(self, error: Exception) -> RankFailed:
        """Return one line for an exception that a hook raised."""
        return self._calls.raised(error)

    def begin_round(self, round: int) -> None:
        """Note the round; the second one that this process runs is watched."""
        self.where.round = round
        self._first_round = round if self._first_round < 0 else self._first_round
        self._calls.watching = self.is_plugin and round == self._first_round + 1

    def warm_up(self) -> None:
        """See `Algorithm.warm_up`."""
        self._calls.warm_up()

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """See `Algorithm.participants`."""
        return self._calls.ask(
            "participants", (seed, round, num_clients, fraction), checks.participants, num_clients
        )

    def groups(self, num_clients: int) -> Ints:
        """See `Algorithm.groups`; where every client gets a mean of its own, it is a group of its own."""
        if "mixes" in self.decides:
            return np.arange(num_clients)
        return self._calls.ask_once("groups", (num_clients,), checks.groups, num_clients).copy()

    def shares(self, name: str, share: str) -> bool:
        """See `Algorithm.shares`."""
        return self._calls.ask_once("shares", (name, share), checks.yes_or_no, key=(name, share))

    def weights(self, samples: Ints) -> Ints:
        """See `Algorithm.weights`."""
        return self._calls.ask_once("weights", (samples.copy(),), checks.weights, self._num_clients).copy()

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """See `Algorithm.update`."""
        return self._calls.ask("update", (model, mean, num_clients), checks.model, len(model))

    def fields(self) -> tuple[Field, ...]:
        """Return the algorithm's own fields of the record."""
        return self._calls.ask_once("fields", (self._num_clients,), checks.fields)

    def check_fields(self, given: Collection[str]) -> None:
        """Refuse a round's row that lacks what the algorithm's record fields promise."""
        for field in self.fields():
            if field.name not in given:
                raise self._calls.failed("decide", f'recorded no "{field.name}", which fields() names')

    def check_averages(self, group: Ints, weights: Ints, participants: Ints) -> None:
        """Refuse, on all ranks, weights that leave a group without a mean."""
        try:
            self._calls.checked("weights", checks.averages, group, weights, participants)
        except RankFailed as error:
            error.agreed = True
            raise

    def check_agreement(self, digests: Floats) -> None:
        """Refuse, on rank 0, participants that differ between ranks; `digests` are of what each computed."""
        others = np.flatnonzero(digests != digests[0])
        if len(others):
            text = f"gave rank {others[0]} other clients than rank 0: it must depend on its arguments alone"
            raise self._calls.failed("participants", text)


def _versions(memory: Mapping[str, Any]) -> list[int]:
    """Return how often each vector was changed."""
    return [-1 if vector is None else vector._version for vector in memory.values()]
