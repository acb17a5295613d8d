"""Programs of clients and of the server: messages, memory, and the verbs of both (imports without torch).

Vectors are flat float32 tensors of torch. A *model vector* has all tensors of the client's model, its
parameters first and then the running statistics (batch normalisation), [length]. A *shared vector* has those
that travel, in the same order, [shared].
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.graphs.packed import GraphSet, Topology

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Frozen = Callable[[str], bool]
"""Says by name which parameters stay as they are."""

Change = Callable[[Any, Any, Any, Mapping[str, Any]], None]
"""`Algorithm.change`."""

Size = Literal["model", "shared"] | tuple[str, ...] | int
"""Length of a vector: of a model vector, of the shared parameters without running statistics, of the
parameters of these names, or a number."""


@dataclass(frozen=True)
class Tensors:
    """Names of a model's parameters, in the order of its vector: all, and those that are shared."""

    names: tuple[str, ...]
    shared: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """A vector that a client keeps from round to round, float32; it is in every checkpoint.

    Attributes
    ----------
    size : Size
    start : float or "model" or None
        Its elements before the client's first round; "model": the client's first model; None: there is
        nothing yet, and the program reads None.
    judged : bool
        Whether the model that is evaluated depends on it: then it is in the recorded hash of the client's
        parameters.
    """

    size: Size
    start: float | Literal["model"] | None = 0.0
    judged: bool = False


@dataclass(frozen=True)
class Message:
    """An array that each participant sends to the server, or that all clients get from it.

    Attributes
    ----------
    shape : tuple of int, "shared", "clients" or "public"
        "shared" stands for the elements of a shared vector, "clients" for the number of clients, "public" for
        the number of public graphs.
    dtype : str
        Of NumPy, with its size: "f4", "i4", "u1", ...
    personal : bool
        Of what is told: whether each client gets an array of its own.
    """

    shape: tuple[int | Literal["shared", "clients", "public"], ...]
    dtype: str = "f4"
    personal: bool = False

    def sized(self, shared: int, clients: int, public: int) -> tuple[int, ...]:
        """Return its shape in numbers."""
        known = {"shared": shared, "clients": clients, "public": public}
        return tuple(known[each] if isinstance(each, str) else each for each in self.shape)


Decision = Literal["groups", "splits", "weights", "mixes", "moves"]
"""What `Algorithm.decide` makes in a round: all groups anew; parts of groups; the weights of the updates; the
weights of all participants' models in the next one of each; or what the models of groups move by."""

Ask = Literal["means", "rows"]
"""What `Algorithm.decide` asks for: means of the updates of groups, or updates of single clients."""


@dataclass(frozen=True)
class Request:
    """What the server's program asks for; made by `Server.means` and `Server.rows`.

    Attributes
    ----------
    kind : str
    places : int64 [n]
        Groups, or clients, ascending.
    """

    kind: Literal["means", "weighted means", "rows", "parameters"]
    places: Ints


Conversation = Generator[Request, Any, None]
"""What a `decide` with `yield` returns."""


@dataclass(frozen=True)
class Nodes:
    """What a client's model gives of the nodes of its training graphs.

    Attributes
    ----------
    logits : float32 [N, C]
        Of all nodes, without dropout and with running statistics.
    degrees : int64 [N]
        Edges to each node, without its self loop.
    places, labels : int64 [n]
        Nodes that are training examples, and their classes.
    propagate : callable
        Takes rows float [N, C] to ``D^-1/2 (A + I) D^-1/2`` times these, float32, D the row sums of A + I.
    """

    logits: npt.NDArray[np.float32]
    degrees: Ints
    places: Ints
    labels: Ints
    propagate: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]]


class Network(Protocol):
    """The clients' network as the server runs it; for `runs_network`.

    Attributes
    ----------
    width, classes : int
        Features of a node, and classes.
    """

    width: int
    classes: int

    def outputs(self, vector: Any, topology: Topology, features: Any) -> Any:
        """Return the outputs for all nodes of a graph, float32 [N, C], torch, without dropout.

        They can be differentiated by model and features.

        Parameters
        ----------
        vector : float32 [shared], torch
            A model.
        topology : Topology
            One graph.
        features : float32 [N, width], torch
        """


class Batch(Protocol):
    """Training graphs of one step."""

    @property
    def labels(self) -> Any:
        """Labels of the graphs: int64 [B], or float [B, T] of tasks with several labels a graph."""

    def of(self, rows: Any) -> Any:
        """Return the batch's rows of a table with one for every training graph."""

    @property
    def features(self) -> Any:
        """Features of the graphs' nodes, float32 [N, width]."""

    def moved(self, shift: Any) -> Batch:
        """Return the same graphs, with features that are moved by float32 [N, width]; for `reads_outputs`."""

    def losses(self, outputs: Any, labels: Any = None) -> Any:
        """Return the task's loss of each label, 0 where it is missing; for `reads_outputs`.

        Parameters
        ----------
        outputs : float32 [B, C]
        labels : optional
            As `labels`, which they are by default, or as `soft_labels` has them.
        """

    def soft_labels(self, outputs: Any) -> Any:
        """Return what outputs predict, for `losses`: probabilities, or numbers; for `reads_outputs`."""


Term = Callable[[Batch, Any], Any]
"""Returns a term of the loss of a batch from its graphs' embeddings [B, h]: a scalar that can be
differentiated by them, or None for none."""


class Part(Protocol):
    """Some tensors of a model vector."""

    def pack(self, row: Any) -> Any:
        """Return their elements as a new vector."""

    def unpack(self, values: Any, row: Any) -> None:
        """Write such a vector into a model vector."""


class Evaluated(Protocol):
    """A client that does not train, as `Algorithm.evaluated` and `Algorithm.predict` see it.

    Attributes
    ----------
    model : float32 [length]
        Its model, as received.
    """

    model: Any

    @property
    def memory(self) -> Mapping[str, Any]:
        """What `Algorithm.memory` declares, by name, float32 [*] or None.

        Only a training client assigns to it, which copies the values.
        """

    @property
    def incoming(self) -> Mapping[str, Any]:
        """What the server has of the vectors of `Algorithm.sends`, and what it tells, by name, float32 [*].

        The first came with the model; the second as the client has it (`Server.tell`), None before there is
        any.
        """

    @property
    def shared(self) -> Part:
        """The tensors that are shared."""

    def part(self, name: str | tuple[str, ...]) -> Part:
        """Return the tensors of these names, or of a memory whose size are names."""

    def embeddings(self) -> Any:
        """Return what the evaluated model pools of every held-out graph, float32 [n, h]; in `predict`."""

    def outputs(self, *, at: Any = None) -> Any:
        """Return a model's outputs for every held-out graph, float32 [n, C]; in `predict`.

        For `reads_outputs`.

        Parameters
        ----------
        at : float32 [length], optional
            A model vector; by default the evaluated one.
        """


class Client(Evaluated, Protocol):
    """A client in one round, as its program sees it.

    Attributes
    ----------
    id, round, seed : int
        The client's number, the round from 0, and the run's seed.
    samples : int
        Its training graphs.
    lr : float
        Length of a local step.
    local_epochs, steps : int
        What the case asks for, and the steps that the model has taken in this round.
    trained, trained_shared : int
        Parameters of a model vector and of a shared vector, before the running statistics.
    model : float32 [length]
        What it trains and sends; at the start the received tensors, and its own where it shares none.
    received : float32 [shared]
        What it got.
    moved : float32 [shared]
        The shared part of the model minus `received`.
    width : int
        Features of a node.
    labels : int64 [samples], NumPy
        Classes of the training graphs.
    graphs : GraphSet
        The training graphs, whose examples may be nodes; for labels of nodes, and `reads_outputs`.
    """

    id: int
    round: int
    seed: int
    samples: int
    lr: float
    local_epochs: int
    trained: int
    trained_shared: int
    width: int
    steps: int
    received: Any
    moved: Any
    memory: MutableMapping[str, Any]
    labels: Ints
    graphs: GraphSet

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of one of `Algorithm.messages`."""

    def run_epochs(
        self,
        vector: Any = None,
        *,
        epochs: int | None = None,
        moments: str = "model",
        change: Change | None = None,
        frozen: Frozen | None = None,
        term: Term | None = None,
    ) -> None:
        """Train a model vector for some epochs; the fast path of every kernel.

        Parameters
        ----------
        vector : float32 [length], optional
            The model by default. What is reported of the training (loss, accuracy, samples, gradient) is the
            model's.
        epochs : int, optional
            The case's local epochs by default.
        moments : str
            Which of the optimizer's moments: "model", or a name of `Algorithm.moments`.
        change : Change, optional
            By default, `Algorithm.change`.
        frozen : Frozen, optional
        term : Term, optional
            For networks that embed graphs.
        """

    def batches(self, epochs: int | None = None) -> Iterator[Batch]:
        """Yield the batches of some epochs, by default the case's, in the order that the seed draws."""

    def sample(self, share: float) -> list[Batch]:
        """Return batches of a random share of the training graphs; their passes are not reported."""

    def public(self) -> Batch:
        """Return the graphs that all clients have, by the case's option `public`; it has no labels."""

    def outputs(self, batch: Batch | None = None, at: Any = None) -> Any:
        """Return a model's outputs, without dropout, float32 [B, C]; for `reads_outputs`.

        Of a batch, or of all training graphs.
        """

    def gradient(
        self,
        batch: Batch,
        at: Any = None,
        *,
        reported: bool = False,
        loss: Callable[..., Any] | None = None,
        term: Term | None = None,
        beside: Sequence[Batch] = (),
    ) -> Any:
        """Return the gradient of a batch's loss at a model vector, float32 [length], by default at the model.

        Running statistics of `at` follow the pass. All passes of one of the `batches` have the same dropout.

        Parameters
        ----------
        batch : Batch
        at : float32 [length], optional
        reported : bool
            Whether the pass counts as the model's own, as it does at the model. The gradient is then the
            model's, which may be changed in place until the next pass; its norm is recorded.
        loss : callable, optional
            Takes the outputs [B, C] to a scalar in place of the task's loss, for `reads_outputs`; its pass is
            reported, with the task's loss, only where `reported` says so.
        term : Term, optional
            Takes the batch and its embeddings to a scalar in place of the task's loss, likewise.
        beside : sequence of Batch
            Whose outputs `loss` takes as well, in order, with the same dropout. Their passes leave no running
            statistics.
        """

    def slope(self, batch: Batch, loss: Callable[[Any], Any], at: Any = None) -> Any:
        """Return the gradient of a loss of the outputs by the nodes' features, float32 [N, width].

        The pass has no dropout; for `reads_outputs`.

        Parameters
        ----------
        batch : Batch
        loss : callable
            Takes the outputs [B, C] to a scalar.
        at : float32 [length], optional
        """

    def loss(self) -> float:
        """Return the mean loss of the last pass."""

    def embeddings(self, at: Any = None) -> Any:
        """Return what a model pools of every training graph, without dropout, float32 [samples, h]."""

    def training_loss(self, at: Any = None) -> float:
        """Return a model's mean loss on all training graphs, without dropout."""

    def validation_loss(self, at: Any = None) -> float:
        """Return a model's mean loss on the validation graphs, without dropout."""

    def mean_embedding(self, at: Any = None) -> Floats:
        """Return the mean over the training graphs of what a model pools of each, float64 [h]."""

    def nodes(self, at: Any = None) -> Nodes:
        """Return what a model gives of the nodes of the training graphs; for labels of nodes."""

    def mean_state(self, topology: Topology, features: npt.NDArray[np.float32], at: Any = None) -> Floats:
        """Return the mean of what the head would see of each node of another graph, float64 [h].

        Parameters
        ----------
        topology : Topology
        features : float32 [N, width]
        at : float32 [length], optional
        """

    def step(
        self, vector: Any, gradient: Any, *, moments: str = "model", frozen: Frozen | None = None
    ) -> None:
        """Take a step of the case's optimizer in place; a step of the model takes `Algorithm.change` as well.

        Parameters
        ----------
        vector : float32 [*]
            A model vector, of which running statistics stay as they are, or a memory.
        gradient : float32 [*]
        moments : str
        frozen : Frozen, optional
        """

    def send(self, name: str, value: Any) -> None:
        """Send something that the algorithm declares; in `train` or `trained`.

        Parameters
        ----------
        name : str
        value
            A shared vector (`sends`), a number (`numbers`), or an array (`messages`).
        """


@dataclass(frozen=True)
class Offer:
    """What a client gives in an exchange before round 1; made by the verbs of `Preparing`."""

    kind: Literal["count", "show", "answer"]
    value: Any


Offers = Generator[Offer, Any, None]
"""What a `prepare` with `yield` returns."""


class Preparing(Protocol):
    """A client before round 1, as `Algorithm.prepare` sees it.

    All clients take the same exchanges in the same order.

    Attributes
    ----------
    id, seed, classes : int
        The client's number, the run's seed, and the classes of its labels.
    graphs : GraphSet
        Its graphs with their training examples.
    device : torch.device
    """

    id: int
    seed: int
    classes: int
    graphs: GraphSet
    device: Any

    def count(self, number: int) -> Offer:
        """Tell all clients a number: ``numbers = yield client.count(n)``, int64 [clients]."""

    def show(self, rows: Any) -> Offer:
        """Show all clients rows: ``shown = yield client.show(rows)``, the rows of each client, in order.

        Parameters
        ----------
        rows : float32 [n, d]
            As many as were counted last.
        """

    def answer(self, rows: Sequence[Any]) -> Offer:
        """Answer what was shown: ``mine = yield client.answer(rows)``, float32 [n, d].

        What returns is the sum of what all others answered this client, in their order.

        Parameters
        ----------
        rows : sequence of float32 [n_j, d]
            For each client; the client's own are left out.
        """

    def adam(self, size: int, *, lr: float, weight_decay: float) -> Callable[[Any, Any], None]:
        """Return what takes Adam's step of so many parameters in place, given them and their gradient."""

    def add_nodes(self, neighbours: Ints, features: npt.NDArray[np.float32]) -> None:
        """Add nodes to the client's graph, in training and evaluation; its examples stay.

        Parameters
        ----------
        neighbours : int64 [G]
            The node that each is joined to, ascending.
        features : float32 [G, d]
        """

    def work(self, flops: int) -> None:
        """Count FLOPs as the client's."""

    def proceed(self) -> None:
        """End here where the run is asked to stop; to be called every second or so."""


class Server(Protocol):
    """The server when all participants of a round have reported, as `Algorithm.decide` sees it.

    Attributes
    ----------
    seed, round : int
        The run's seed, and the round from 0.
    lr : float
        Length of the clients' steps.
    participants : int64 [k]
        Clients that trained, ascending.
    group : int64 [clients]
        Groups, as they were or as `regroup` made them.
    samples, weights : int64 [clients]
        Training graphs, and what `Algorithm.weights` makes of them.
    trained : int
        Shared parameters: the first elements of an update. Running statistics and `Algorithm.sends` follow.
    domains : tuple of str or None
        Domain of each client's dataset; None where not all are known, or all are alike.
    reports : mapping of str to float64 [clients]
        ``train_loss``, ``steps`` (local steps), ``delta_norm`` and ``gradient_norm`` (norms of the shared
        parameters' update and last gradient), and the `numbers` that clients sent; NaN for others.
    messages : mapping of str to array [k, ...]
        What the participants sent, by `Algorithm.messages`.
    """

    seed: int
    round: int
    lr: float
    participants: Ints
    group: Ints
    samples: Ints
    weights: Ints
    trained: int
    domains: tuple[str, ...] | None
    reports: Mapping[str, Floats]
    messages: Mapping[str, npt.NDArray[Any]]

    def groups(self) -> list[Ints]:
        """Return the participants of each group, int64 [m] each, ascending."""

    def model(self, members: Ints) -> npt.NDArray[np.float32]:
        """Return the model of a group, as its members received it, float32 [shared]; for "moves".

        Parameters
        ----------
        members : int64 [m]
            One of `groups`.
        """

    def means(self, groups: Sequence[int] | Ints, *, weighted: bool = True) -> Request:
        """Ask for the mean updates of groups: ``found = yield server.means(groups)``.

        The answer is a dict of group to float64 [trained]; a group of which no update arrived is not in it.

        Parameters
        ----------
        groups : sequence of int
        weighted : bool
            By `samples`; else all count alike.
        """

    def rows(self, clients: Sequence[int] | Ints, *, parameters: bool = False) -> Request:
        """Ask for the updates of participants: ``found = yield server.rows(clients)``.

        The answer is float32 [n, shared], ascending by client; models where the groups are made anew, or the
        models mixed.

        Parameters
        ----------
        clients : sequence of int
        parameters : bool
            Only the first `trained` elements.
        """

    def regroup(self, group: Ints) -> None:
        """Set the group of each client, int64 [clients], from 0. The models themselves are averaged then."""

    def split(self, parts: Sequence[Ints]) -> None:
        """Split a group; each part begins with the model of the group.

        Parameters
        ----------
        parts : sequence of int64 [*]
            Its participants. The first part keeps the group's number, and the clients that sat out.
        """

    def weigh(self, members: Ints, weights: npt.ArrayLike, divisor: float) -> None:
        """Set how a group's participants are averaged: sum_i weights_i delta_i / divisor.

        Weights keep 29 significant bits: products with float32 are exact then. Running statistics move by
        the weighted mean, whatever the divisor, because a variance must stay positive.

        Parameters
        ----------
        members : int64 [m]
            One of `groups`.
        weights : float64 [m]
        divisor : float
        """

    def mix(self, weights: Floats) -> Floats:
        """Set the weights of all participants' models in the next one of each, float64 [k, k].

        Row i is of participant i. Weights are 0 or more, one in each row above 0. What returns is the rows
        divided by their sums.
        """

    def move(self, members: Ints, step: Floats) -> None:
        """Set what the model of a group moves by, in place of a mean.

        Parameters
        ----------
        members : int64 [m]
            One of `groups`.
        step : float64 [shared]
            Handed to `Algorithm.update`.
        """

    def record(self, name: str, values: npt.NDArray[Any]) -> None:
        """Put the round's values of one of `Algorithm.fields` into the record."""

    def tell(self, name: str, array: npt.NDArray[Any]) -> None:
        """Send an array of `Algorithm.tells` to all clients; where it is NaN they keep what they have.

        Parameters
        ----------
        name : str
        array : float32
            Of the declared shape; of a `personal` one each client's, one after another, [clients, ...].
        """
