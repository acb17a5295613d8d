"""A client's program: what it keeps, and the verbs by which it trains (imports without torch).

Vectors are flat float32 tensors of torch. A *model vector* has all tensors of the client's model, its
parameters first and then the running statistics (batch normalisation), [length]. A *shared vector* has those
that travel, in the same order, [shared].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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


class Batch(Protocol):
    """Training graphs of one step.

    Attributes
    ----------
    labels : int64 [B], or float [B, T] of tasks with several labels a graph
    """

    @property
    def labels(self) -> Any:
        """See above."""

    def of(self, rows: Any) -> Any:
        """Return the batch's rows of a table with one for every training graph."""


Term = Callable[[Batch, Any], Any]
"""Returns a term of the loss of a batch from its graphs' embeddings [B, h]: a scalar that can be
differentiated by them, or None for none."""


class Part(Protocol):
    """Some tensors of a model vector."""

    def pack(self, row: Any) -> Any:
        """Return their elements as a new vector."""

    def unpack(self, values: Any, row: Any) -> None:
        """Write such a vector into a model vector."""


class Client(Protocol):
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
    memory : mapping of str to float32 [*] or None
        Declared by `Algorithm.memory`; an assignment copies the values.
    incoming : mapping of str to float32 [shared]
        What the server has of the vectors of `Algorithm.sends`: they came with the model.
    prototypes : float32 [C, h] or None
        Those of `Prototypes`, as the client got them last; NaN for classes without any.
    """

    id: int
    round: int
    seed: int
    samples: int
    lr: float
    local_epochs: int
    trained: int
    trained_shared: int

    @property
    def steps(self) -> int:
        """See above."""

    @property
    def model(self) -> Any:
        """See above."""

    @property
    def received(self) -> Any:
        """See above."""

    @property
    def moved(self) -> Any:
        """See above."""

    @property
    def memory(self) -> MutableMapping[str, Any]:
        """See above."""

    @property
    def incoming(self) -> Mapping[str, Any]:
        """See above."""

    @property
    def prototypes(self) -> Any:
        """See above."""

    def part(self, name: str) -> Part:
        """Return the tensors of a memory whose size are names."""

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

    def gradient(self, batch: Batch, at: Any = None, *, reported: bool = False) -> Any:
        """Return the gradient of a batch's loss at a model vector, float32 [length], by default at the model.

        Running statistics of `at` follow the pass. All passes of one of the `batches` have the same dropout.

        Parameters
        ----------
        batch : Batch
        at : float32 [length], optional
        reported : bool
            Whether the pass counts as the model's own, as it does at the model. The gradient is then the
            model's, which may be changed in place until the next pass; its norm is recorded.
        """

    def loss(self) -> float:
        """Return the mean loss of the last pass."""

    def embeddings(self, at: Any = None) -> Any:
        """Return what a model pools of every training graph, without dropout, float32 [samples, h]."""

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

    def send(self, name: str, vector: Any) -> None:
        """Have a shared vector of `Algorithm.sends` travel behind the update."""


class Evaluated(Protocol):
    """A client that does not train, as `Algorithm.evaluated` sees it: its model, and what it keeps."""

    @property
    def model(self) -> Any:
        """Float32 [length]."""

    @property
    def memory(self) -> Mapping[str, Any]:
        """See `Client.memory`."""

    def part(self, name: str) -> Part:
        """See `Client.part`."""
