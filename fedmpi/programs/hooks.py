"""An algorithm as the engine calls it: every hook's name is noted, and what it returns is checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Algorithm, Floats, Ints, Model
from fedmpi.algorithms.declared import overrides
from fedmpi.algorithms.program import Conversation, Evaluated, Memory, Message, Network, Offers, Size, Tensors
from fedmpi.errors import RankFailed
from fedmpi.models.options import ModelOptions
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_calls import HookCalls, T
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
    "runs_network",
)
"""Attributes of an algorithm that must be equal on all ranks."""


class Hooks(HookCalls):
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

    Raises
    ------
    RankFailed
        By any method: see `HookCalls`.
    """

    def __init__(self, algorithm: Algorithm, num_clients: int, where: Position) -> None:
        super().__init__(algorithm, where)
        self._num_clients = num_clients
        self.name, self.communicates = algorithm.name, algorithm.communicates
        self.pools, self.reads_share = algorithm.pools, algorithm.reads_share
        self.sends, self.numbers = tuple(algorithm.sends), tuple(algorithm.numbers)
        self.decides, self.asks = frozenset(algorithm.decides), frozenset(algorithm.asks)
        self.central = algorithm.central or bool(self.decides & {"moves", "mixes"})
        has = partial(overrides, type(algorithm))
        self.change = self._change if has("change") else None
        self.evaluated = self._evaluated if has("evaluated") else None
        self.predict = self._predict if has("predict") else None
        self._trains, self.renews, self.prepares = has("train"), has("trained"), has("prepare")
        self.reads_outputs, self.tasks = algorithm.reads_outputs, algorithm.tasks
        self.runs_network = algorithm.runs_network
        self._first_round = -1
        self._declared: Mapping[str, npt.NDArray[Any]] = {}

    @property
    def averages_models(self) -> bool:
        """Whether shared tensors are averaged instead of their updates."""
        return bool(self.decides & {"groups", "mixes"})

    def prepare(self, client: object) -> Offers:
        """Run a client's program before round 1, yielding what it offers: see `Algorithm.prepare`."""
        self.watching = self.is_plugin
        yield from self.talk("prepare", client)

    def disagreed(self) -> RankFailed:
        """Return the error where clients do not take the same exchanges before round 1, on every rank."""
        text = "takes other exchanges, or rows of other widths, on some clients than on others"
        error = self.failed("prepare", text)
        error.agreed = True
        return error

    def memory(self, tensors: Tensors) -> Mapping[str, Memory]:
        """See `Algorithm.memory`."""
        return self.ask_once("memory", (tensors,), checks.memory, tensors, key=tensors)

    def moments(self, tensors: Tensors) -> Mapping[str, Size]:
        """See `Algorithm.moments`."""
        return self.ask_once("moments", (tensors,), checks.moments, tensors, key=tensors)

    def train(self, client: Any) -> None:
        """Run the program of a client, a `program.Client` with its passes `done`: see `Algorithm.train`."""
        if self._trains:
            before = client.received._version
            self.call("train", client)
            if client.received._version != before:
                raise self.failed("train", "changed `received`")
        else:
            client.run_epochs()
        if not client.done:
            raise self.failed("train", "took no pass at the model: call run_epochs or gradient")

    def after_training(self, client: object) -> None:
        """See `Algorithm.trained`."""
        if self.renews:
            self.call("trained", client)

    def reported(self, report: Callable[[], T]) -> T:
        """Return what a client's program sent, which `report` checks."""
        return self.checked("trained" if self.renews else "train", report)

    def goes_on(self) -> None:
        """Note that the program that runs has called a verb."""
        if self.where.hook is not None:
            self.where.hook = (self.where.hook[0],)

    def _change(self, gradient: Any, model: Any, received: Any, memory: Mapping[str, Any]) -> None:
        """See `Algorithm.change`."""
        before = received._version
        self.call("change", gradient, model, received, memory)
        if received._version != before:
            raise self.failed("change", "changed `received`: only `gradient` may change")

    def _evaluated(self, client: Evaluated) -> Any:
        """See `Algorithm.evaluated`."""
        before = client.model._version, _versions(client.memory)
        found = self.ask("evaluated", (client,), checks.like, client.model)
        if client.model._version != before[0]:
            raise self.failed("evaluated", "changed `client.model`: change a clone of it")
        if _versions(client.memory) != before[1]:
            raise self.failed("evaluated", "changed `client.memory`: only train and trained may")
        return found

    def _predict(self, client: Evaluated, count: int) -> Any:
        """See `Algorithm.predict`; `count` is the number of held-out graphs. Classes are int64, NumPy."""
        return self.ask("predict", (client,), checks.predicted, count)

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """See `Algorithm.messages`."""
        return self.ask_once("messages", (model, classes), checks.messages, key=classes)

    def tells(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """See `Algorithm.tells`."""
        return self.ask_once("tells", (model, classes), checks.told, key=classes)

    def decide(self, server: Any) -> Conversation:
        """Run the server's program, yielding what it asks for: see `Algorithm.decide`.

        Parameters
        ----------
        server
            A `program.Server`, whose `refuse_undeclared` and `check` raise Breach for requests, and in the
            end for decisions, that are not as the class declares them.
        """
        returned = yield from self.talk("decide", server, check=server.refuse_undeclared)
        if returned is not None:
            raise self.failed("decide", f"returned {type(returned).__name__}: it returns nothing")
        self.checked("decide", server.check)

    def remark(self, participants: int, one_step: bool) -> str:
        """See `Algorithm.remark`."""
        return self.ask("remark", (participants, one_step), checks.text)

    def begin(self, trained: int, num_clients: int, network: Network) -> None:
        """See `Algorithm.begin` and `Algorithm.server_memory`."""
        if self.algorithm.runs_network:
            self.algorithm.network = network
        self.call("begin", trained, num_clients)
        kept = self.ask("server_memory", (trained, num_clients), checks.state)
        self.algorithm.server = {name: array.copy() for name, array in kept.items()}
        self._declared = kept

    def server_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the server keeps, as a checkpoint has it."""
        server = getattr(self.algorithm, "server", None)  # a plug-in may have deleted it
        return self.checked("server_memory", checks.server_arrays, server, self._declared)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take back what the server kept."""
        self.algorithm.server = {name: np.array(arrays[name]) for name in self._declared}

    def begin_round(self, round: int) -> None:
        """Note the round; the second one that this process runs is watched."""
        self.where.round = round
        self._first_round = round if self._first_round < 0 else self._first_round
        self.watching = self.is_plugin and round == self._first_round + 1

    def warm_up(self) -> None:
        """See `Algorithm.warm_up`."""
        self.call("warm_up")

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """See `Algorithm.participants`."""
        return self.ask(
            "participants", (seed, round, num_clients, fraction), checks.participants, num_clients
        )

    def groups(self, num_clients: int) -> Ints:
        """See `Algorithm.groups`; where every client gets a mean of its own, it is a group of its own."""
        if "mixes" in self.decides:
            return np.arange(num_clients)
        return self.ask_once("groups", (num_clients,), checks.groups, num_clients).copy()

    def shares(self, name: str, share: str) -> bool:
        """See `Algorithm.shares`."""
        return self.ask_once("shares", (name, share), checks.yes_or_no, key=(name, share))

    def weights(self, samples: Ints) -> Ints:
        """See `Algorithm.weights`."""
        return self.ask_once("weights", (samples.copy(),), checks.weights, self._num_clients).copy()

    def update(self, model: Model, mean: Floats, num_clients: int) -> Model:
        """See `Algorithm.update`."""
        check = partial(checks.array, more=", as the model it was given")
        return self.ask("update", (model, mean, num_clients), check, "float32", model.shape)

    def fields(self) -> tuple[Field, ...]:
        """Return the algorithm's own fields of the record."""
        return self.ask_once("fields", (self._num_clients,), checks.fields)

    def check_fields(self, given: Collection[str]) -> None:
        """Refuse a round's row that lacks what the algorithm's record fields promise."""
        for field in self.fields():
            if field.name not in given:
                raise self.failed("decide", f'recorded no "{field.name}", which fields() names')

    def check_averages(self, group: Ints, weights: Ints, participants: Ints) -> None:
        """Refuse, on all ranks, weights that leave a group without a mean."""
        try:
            self.checked("weights", checks.averages, group, weights, participants)
        except RankFailed as error:
            error.agreed = True
            raise

    def check_agreement(self, digests: Floats) -> None:
        """Refuse, on rank 0, participants that differ between ranks; `digests` are of what each computed."""
        others = np.flatnonzero(digests != digests[0])
        if len(others):
            text = f"gave rank {others[0]} other clients than rank 0: it must depend on its arguments alone"
            raise self.failed("participants", text)


def _versions(memory: Mapping[str, Any]) -> list[int]:
    """Return how often each vector was changed."""
    return [-1 if vector is None else vector._version for vector in memory.values()]
