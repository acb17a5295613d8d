"""What changes how a client trains, and which models it keeps; hooks on the clients' ranks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from fedmpi.algorithms.capabilities.base import ONE_BY_ONE, Capability


class Vector(Protocol):
    """What an algorithm may do with a flat float32 vector of shared parameters (a torch tensor)."""

    def add_(self, other: Any, *, alpha: float = 1.0) -> Any:
        """Add ``alpha * other`` in place."""

    def __sub__(self, other: Any) -> Any: ...


class LocalPenalty(Capability):
    """A penalty in the local loss (FedProx)."""

    @abstractmethod
    def penalty(self, parameters: Vector, reference: Vector, gradient: Vector) -> None:
        """Add the gradient of the penalty to `gradient` in place; called in every local step.

        Parameters
        ----------
        parameters, reference, gradient : float32 [shared]
            Current parameters, those received at the start of the round, and the gradient of the local
            loss.
        """


class ControlVariates(Capability):
    """Control variates of server and clients, zero at the start (SCAFFOLD).

    The server's follows the parameters in the vector of a group's model, the changes of the clients'
    follow their updates, so `update` gets both halves. The clients' optimizer is plain SGD.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def correction(self, own: Any, server: Any) -> Any:
        """Return what is added to the gradient of the shared parameters in every local step.

        Parameters
        ----------
        own, server : float32 [trained], torch
            Control variates of the client and of the server.
        """

    @abstractmethod
    def renewed(self, own: Any, server: Any, moved: Any, steps: int, lr: float) -> Any:
        """Return the client's next control variate.

        Parameters
        ----------
        own, server : float32 [trained], torch
        moved : float32 [trained], torch
            Shared parameters after the round's local steps minus those before.
        steps : int
        lr : float
            Length of a local step.
        """


class ClientVector(Capability):
    """A vector of each client, as long as the shared parameters, that never leaves it (FedDyn).

    It is zero at the start, and changes in the rounds in which the client takes part.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def linear_term(self, own: Any) -> Any:
        """Return what is added to the gradient of the shared parameters in every local step.

        Parameters
        ----------
        own : float32 [trained], torch
            The client's vector.
        """

    @abstractmethod
    def next_vector(self, own: Any, moved: Any, steps: int, lr: float) -> Any:
        """Return the client's vector after local training.

        Parameters
        ----------
        own : float32 [trained], torch
        moved : float32 [trained], torch
            Shared parameters after the round's local steps minus those before.
        steps : int
        lr : float
            Length of a local step.
        """


class TrainingPhases(Capability):
    """Local training in phases, each of which trains some tensors and leaves the others alone (FedRep).

    Every phase has optimizer moments of its own. Running statistics (batch normalisation) follow every pass.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def phases(self, local_epochs: int) -> tuple[int, ...]:
        """Return the epochs of each phase of a round, in order; at least one each.

        Parameters
        ----------
        local_epochs : int
            The case's option.
        """

    @abstractmethod
    def trains(self, name: str, phase: int) -> bool:
        """Return whether a phase trains a parameter.

        Parameters
        ----------
        name : str
            Of the parameter, as its module has it.
        phase : int
            Place in `phases`.
        """


class PersonalModel(Capability):
    """A second model of each client, which never leaves it (Ditto).

    It starts as the client's first model. A participant trains it after its copy of the group's model,
    for as many epochs, with batches, dropout and optimizer moments of its own. Validation and test results
    are the personal model's; the training report and what travels are of the group's model, as in FedAvg.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def personal_penalty(self, parameters: Vector, received: Vector, gradient: Vector) -> None:
        """Add the gradient of a penalty to the personal model's gradient, in place; in every local step.

        Parameters
        ----------
        parameters, received, gradient : float32 [shared]
            Of the personal model, of the group's model at the start of the round, and of the local loss.
        """


class MixedModel(Capability):
    """A second model of each client, v, mixed with its copy w of the group's model (APFL).

    It starts as the client's first model and never leaves it. In every local step w moves by the gradient at
    w, and v by the gradient at the mixture ``share v + (1 - share) w`` with respect to v, of the same batch
    and dropout, with optimizer moments of its own. Validation and test results are those of the mixture with
    the group's new model; the training report and what travels are of w, as in FedAvg.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def first_share(self) -> float:
        """Return the share of v in the mixture at the start, 0 to 1."""

    @abstractmethod
    def next_share(self, share: float, slope: float, lr: float) -> float:
        """Return a client's share, 0 to 1, from the first step of a round on.

        Parameters
        ----------
        share : float
            Before that step.
        slope : float
            Derivative of the mixture's loss with respect to the share, in that step.
        lr : float
            Length of a local step.
        """


class MaskedModel(Capability):
    """A mask of each client over some of its parameters, which never leaves it (FED-PUB).

    The client's model is its parameters times its mask, element by element. The mask is 1 at the start. In
    every local step parameters and mask both move by the gradient at that product, the mask with optimizer
    moments of its own. What travels are the parameters without the mask. Validation and test results, and
    what the trained client reports, are of the product without elements of the mask near 0.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def masks(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return which parameters have a mask, by name; at least one.

        Parameters
        ----------
        names : tuple of str
            Of all parameters, in the order in which the model lists them.
        """

    @abstractmethod
    def mask_penalty(self, mask: Any, gradient: Any) -> None:
        """Add the gradient of a penalty of the mask to its gradient, in place; in every local step.

        Parameters
        ----------
        mask, gradient : float32 [masked], torch
        """

    @property
    def least_mask(self) -> float:
        """Elements of the mask below it, signs left out, count as 0 after training; 0 for none."""
        return 0.0


@dataclass(frozen=True)
class Embeddings:
    """What the model pools of a batch's graphs, as `EmbeddingLoss.embedding_loss` sees it (torch).

    Attributes
    ----------
    current : float32 [B, h]
        Of the model that trains, with dropout.
    labels : int64 [B]
        Classes; of tasks with several labels a graph, float [B, T].
    received, previous : float32 [B, h] or None
        Of the received model and of the client's model at the end of its last round, without dropout and
        with running statistics; None where the capability does not need them, and before there is one.
    prototypes : float32 [C, h] or None
        Of `Prototypes`, as the client got them last; NaN for classes without any.
    """

    current: Any
    labels: Any
    received: Any = None
    previous: Any = None
    prototypes: Any = None


class EmbeddingLoss(Capability):
    """A term of the local loss that is made of embeddings of the batch's graphs (MOON)."""

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE
    needs_received: ClassVar[bool] = False
    """True: the received model's embeddings are wanted."""
    needs_previous: ClassVar[bool] = False
    """True: those of the client's own last model are, which it then keeps."""

    @abstractmethod
    def embedding_loss(self, batch: Embeddings) -> Any:
        """Return the term, a torch scalar that can be differentiated by `batch.current`; None for none."""


LossAt = Callable[[Any], tuple[float, Any]]
"""Returns the mean loss of a batch at merged parameters [merged], and its gradient there."""


@dataclass(frozen=True)
class Merging:
    """A client that merges its own parameters with received ones, as `LocalMerging.merging_weights` sees it.

    Attributes
    ----------
    own, received : float32 [merged], torch
        At the end of the client's last round, and of the group's model.
    weights : float32 [merged], torch
        The client's, as the hook returned them last; ones before.
    first : bool
        Whether the client merges for the first time.
    batches : callable
        Draws a share of the training graphs, at random, and returns the loss of each batch of them. All
        other parameters are the received ones, or the client's own where they are not shared.
    """

    own: Any
    received: Any
    weights: Any
    first: bool
    batches: Callable[[float], list[LossAt]]


class LocalMerging(Capability):
    """Some received parameters are merged with the client's own before it trains (FedALA).

    They start from ``own + (received - own) * weights``; all others, and all in a client's first round,
    are taken as received. The weights stay with the client. Validation and test results are of the model that
    the client trained last.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def merges(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of the shared parameters are merged, by name; at least one.

        Parameters
        ----------
        names : tuple of str
            In the order in which the model lists them.
        """

    @abstractmethod
    def merging_weights(self, client: Merging) -> Any:
        """Return the client's weights, float32 [merged] (torch)."""
