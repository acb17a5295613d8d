"""What the server learns beside updates, and how it forms groups and means: hooks on rank 0."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Floats, Ints
from fedmpi.algorithms.capabilities.base import ONE_BY_ONE, Bytes, Capability, Reports
from fedmpi.graphs.packed import Topology
from fedmpi.models.options import ModelOptions
from fedmpi.store.schema import Field

RECEIVED_LOSS = "received_loss"
"""Column of the training report: the loss of the received model on the client's training graphs."""

AGREEMENT = "domain_agreement"
"""Record field of algorithms that form their groups anew in every round; the engine fills it."""

CLIENT_WEIGHTS = "client_weights"
"""Record field of algorithms that make a model for each client; the engine fills it."""


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
class NodeOutputs:
    """What a client's trained model gives of the nodes of its training graphs, as `Trained.nodes` has it.

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


@dataclass(frozen=True)
class Trained:
    """A client after its local training, as `Regroups.report` and `PersonalAggregates.statistics` see it.

    What the callables return is the trained model's, before any average, without dropout and with running
    statistics. Their passes count as the client's.
    """

    seed: int
    client: int
    round: int
    width: int
    """Features of a node."""
    mean_embedding: Callable[[], Floats]
    """Mean over its training graphs of what the model pools of each, float64 [h]."""
    nodes: Callable[[], NodeOutputs]
    """What the model gives of the nodes of its training graphs; for labels of nodes."""
    mean_state: Callable[[Topology, npt.NDArray[np.float32]], Floats]
    """Mean of what the head would see of each node of another graph, float64 [h].

    Takes the graph and its features, float32 [N, width]; for labels of nodes."""


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


class PersonalAggregates(Capability):
    """A model for each client: a mean of all participants' models with weights of its own (FedGTA, FED-PUB).

    Participants send their models and some statistics to rank 0, which decides on the weights. A client that
    sits out keeps the model that it has. Every client is a group of its own. Tensors are averaged, not their
    updates; `Algorithm.update` gets zeros as the model.
    """

    runs_on: ClassVar[frozenset[str]] = ONE_BY_ONE
    tasks: ClassVar[frozenset[str]] = frozenset()
    """Names of the tasks that it is for; empty: all."""

    @abstractmethod
    def num_statistics(self, model: ModelOptions, classes: int) -> int:
        """Return the length of `statistics`, the same for all clients."""

    @abstractmethod
    def statistics(self, trained: Trained) -> npt.NDArray[np.float32]:
        """Return what a client tells the server beside its model, float32 [num_statistics]; on its rank."""

    @abstractmethod
    def client_weights(self, statistics: npt.NDArray[np.float32], samples: Ints) -> Floats:
        """Return the weights of the means, float64 [k, k]; on rank 0.

        Row i is of the next model of participant i: the weight of each participant's model, 0 or more, one
        at least above 0. Rows are divided by their sums.

        Parameters
        ----------
        statistics : float32 [k, num_statistics]
            Of the round's participants, ascending.
        samples : int64 [k]
            What `Algorithm.weights` says of them.
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
