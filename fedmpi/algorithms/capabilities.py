"""What an algorithm can do beyond FedAvg: mix-ins, each with a few hooks (imports without torch).

A class gets a capability by deriving from it, before `Algorithm`: ``class Scaffold(ControlVariates,
Algorithm)``. The engine calls a capability's hooks because the class derives from it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Algorithm, Floats, Ints
from fedmpi.models.options import ModelOptions
from fedmpi.store.schema import Field

Bytes = npt.NDArray[np.uint8]
Reports = Mapping[str, Floats]
"""Columns of the clients' training reports by name."""

KERNELS = frozenset({"compiled", "grouped", "csr", "reference"})
ONE_BY_ONE = KERNELS - {"grouped"}
"""Kernels that train one client after another."""

RECEIVED_LOSS = "received_loss"
"""Column of the training report: the loss of the received model on the client's training graphs."""

AGREEMENT = "domain_agreement"
"""Record field of algorithms that form their groups anew in every round; the engine fills it."""


class Capability:
    """Base of all capabilities."""

    runs_on: ClassVar[frozenset[str]] = KERNELS
    """Kernels that can do what the capability needs."""


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


class Prototypes(Capability):
    """Class prototypes travel: each client's to the server, those of all clients back (FedProto).

    After its training a participant embeds its training graphs, without dropout and with running statistics.
    It sends the mean of each class, float32, and how many graphs the class has, int32. Every client gets
    what the server makes of them. Models travel beside them, unless `Algorithm.communicates` is False.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    @abstractmethod
    def global_prototypes(self, means: npt.NDArray[np.float32], counts: Ints) -> npt.NDArray[np.float32]:
        """Return what all clients get, float32 [C, h]; on rank 0.

        Rows of NaN leave a class's prototype as it was.

        Parameters
        ----------
        means : float32 [k, C, h]
            Of the round's participants, ascending; 0 for classes of which a client has no graph.
        counts : int64 [k, C]
            Training graphs of each class.
        """

    @property
    def predicts_by_prototypes(self) -> bool:
        """Whether the nearest prototype decides on a held-out graph's class, instead of the head.

        Losses are the head's in any case.
        """
        return False


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


@dataclass(frozen=True)
class Division:
    """A group divided: its parts, each int64, and the weights [k, k] by which it was done."""

    parts: tuple[Ints, ...]
    weights: Floats


class Splits(Capability):
    """Groups that split (GCFL). All hooks run on rank 0, before the averages of the round."""

    wants_rows: ClassVar[bool] = False
    """True: `split` needs the updates of the group, which travel to rank 0 then and only then."""

    def observe(self, reports: Reports) -> None:
        """Take note of a round's reports before it is averaged.

        Parameters
        ----------
        reports : mapping of str to float64 [clients]
            ``delta_norm`` and ``gradient_norm``; NaN for clients that sat out.
        """

    @abstractmethod
    def split_candidates(self, round: int, group: Ints, reports: Reports) -> list[int]:
        """Return the groups that may split in this round: the norm of their mean update decides.

        Parameters
        ----------
        round : int
        group : int64 [clients]
        reports : mapping of str to float64 [clients]
            As for `observe`.
        """

    @property
    def criterion_is_weighted(self) -> bool:
        """Whether that mean is weighted by training graphs."""
        return False

    @abstractmethod
    def should_split(self, mean_norm: float) -> bool:
        """Return whether a candidate whose mean update has this norm splits now."""

    @abstractmethod
    def split(self, members: Ints, rows: npt.NDArray[np.float32]) -> Division:
        """Return the parts of a group that splits.

        Parameters
        ----------
        members : int64 [k]
            Clients, ascending.
        rows : float32 [k, shared]
            Their updates if `wants_rows`, else [k, 0].
        """

    def after_splits(self) -> None:
        """Take note that at least one group was split in this round."""


@dataclass(frozen=True)
class Trained:
    """A client after its local training, as `Regroups.report` sees it."""

    seed: int
    client: int
    round: int
    mean_embedding: Callable[[], Floats]
    """Mean over its training graphs of what the model pools of each, float64 [h]: the trained model's,
    before any average, without dropout and with running statistics."""


class Regroups(Capability):
    """Groups formed anew in every round, from what the clients report (FedCCH).

    Members come from different models, so the shared tensors themselves are averaged, not their updates.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE

    def report_size(self, model: ModelOptions) -> int:
        """Return the bytes of `report`."""
        return 0

    def report(self, trained: Trained) -> Bytes:
        """Return what a client tells the server beside its training report, uint8 [report_size].

        Called on the client's rank, and only where `report_size` is not 0.
        """
        return np.zeros(0, np.uint8)

    @abstractmethod
    def group(self, seed: int, round: int, reports: Bytes) -> Ints:
        """Return the group of each client in this round, int64 [clients], from 0; on rank 0.

        Parameters
        ----------
        seed, round : int
        reports : uint8 [clients, report_size]
        """


@dataclass(frozen=True)
class RoundWeights:
    """Weights of a group's participants, [k], and what the sum of their weighted updates is divided by."""

    weights: Floats
    divisor: float


class WeightsFromReports(Capability):
    """Weights decided in every round from the participants' reports, in place of `Algorithm.weights`."""

    @abstractmethod
    def round_weights(self, round: int, lr: float, reports: Reports) -> RoundWeights:
        """Return the weights of the participants of one group; on rank 0.

        The group's `mean` becomes sum_i weights_i delta_i / divisor, where weights keep 29 significant
        bits: products with float32 are exact then. Running statistics move by the weighted mean, whatever
        the divisor, because a variance must stay positive.

        Parameters
        ----------
        round : int
        lr : float
            Length of a local step.
        reports : mapping of str to float64 [k]
            By participant, ascending: ``samples`` (training graphs), ``steps`` (local steps),
            ``train_loss``, and ``delta_norm`` and ``gradient_norm``, norms of shared parameters' update
            and last gradient.
        """


class WeightsFromLosses(WeightsFromReports):
    """The same with the loss at the received model (q-FedAvg).

    Participants evaluate the received model on their training graphs, without dropout, before they train;
    reports hold the mean as ``received_loss``.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE


class RowAggregate(Capability):
    """The updates of a group travel to rank 0, where `aggregate` takes the place of the mean (median, Krum).

    All groups are updated on rank 0. `Algorithm.weights` are handed on; what they mean is the algorithm's
    own matter.
    """

    @abstractmethod
    def aggregate(self, rows: npt.NDArray[np.float32], weights: Ints) -> Floats:
        """Return what a group's model moves by, float64 [shared].

        Parameters
        ----------
        rows : float32 [k, shared]
            Updates of the group's participants, ascending by client; their models, with `Regroups`.
        weights : int64 [k]
        """


class Records(Capability):
    """Fields of the algorithm's own in the record."""

    @abstractmethod
    def fields(self, num_clients: int) -> tuple[Field, ...]:
        """Return the fields of the record beside the common ones."""

    def field_values(self) -> dict[str, npt.NDArray[Any]]:
        """Return the values of this round by the names of `fields`; on rank 0."""
        return {}


class ServerState(Capability):
    """State of the server from round to round, kept on rank 0 and in checkpoints (FedOpt, GCFL+)."""

    central: ClassVar[bool] = True
    """`update` runs on rank 0 for every group and may use the state. False: only hooks that run on
    rank 0 anyway do."""

    @abstractmethod
    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what rank 0 must know to go on after a checkpoint.

        Names, types and shapes of the arrays are the same after `begin` as after every round: a checkpoint
        with others is not used.
        """

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take back what `state` returned."""


CONFLICTS: tuple[tuple[type[Capability], type[Capability], str], ...] = (
    (PersonalModel, MixedModel, "a client has one second model"),
    (Regroups, Prototypes, "a client has one report"),
    (LocalMerging, PersonalModel, "results are of one model of the client"),
    (LocalMerging, MixedModel, "results are of one model of the client"),
    (MixedModel, TrainingPhases, "a mixed model takes the steps of the first, all tensors in each"),
    (Regroups, Splits, "groups are formed anew in every round or split, not both"),
    (Regroups, ControlVariates, "regrouping averages models, control variates follow updates"),
    (Regroups, WeightsFromReports, "regrouping averages models, these weights are for updates"),
    (Splits, WeightsFromReports, "a split is decided by whole-number weights"),
    (ControlVariates, WeightsFromReports, "control variates are averaged by weights of their own"),
    (RowAggregate, WeightsFromReports, "nothing is weighted where rows take the place of the mean"),
    (RowAggregate, ControlVariates, "control variates are averaged, rows are not"),
)
"""Capabilities that no class may combine, and why."""


def capabilities_of(algorithm: type[Algorithm]) -> list[type[Capability]]:
    """Return the capabilities that an algorithm's class derives from."""
    kinds = [kind for kind in algorithm.__mro__ if issubclass(kind, Capability)]
    return [kind for kind in kinds if kind is not Capability and not issubclass(kind, Algorithm)]


def hooks_of(capability: type[Capability]) -> list[str]:
    """Return the names of a capability's hooks and flags."""
    return [name for name in vars(capability) if not name.startswith("_") and name != "runs_on"]


def kernels_of(algorithm: type[Algorithm]) -> frozenset[str]:
    """Return the kernels that can run an algorithm: those that can do what all its capabilities need."""
    return KERNELS.intersection(*(kind.runs_on for kind in capabilities_of(algorithm)))
