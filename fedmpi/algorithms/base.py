"""The hooks of an algorithm, with FedAvg's behaviour as default (imports without torch)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from fedmpi.config.options import Options
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, key, permutation
from fedmpi.store.schema import Field as RecordField

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


AGREEMENT = "domain_agreement"
"""Field of algorithms that form their groups anew in every round; the engine fills it."""


class Vector(Protocol):
    """What an algorithm may do with a flat float32 vector of shared parameters (a torch tensor)."""

    def add_(self, other: Any, *, alpha: float = 1.0) -> Any:
        """Add ``alpha * other`` in place."""

    def __sub__(self, other: Any) -> Any: ...


@dataclass(frozen=True)
class Division:
    """A group divided: its parts, each int64, and the weights [k, k] by which it was done."""

    parts: tuple[Ints, ...]
    weights: Floats


@dataclass(frozen=True)
class Trained:
    """A client after its local training, as `Algorithm.report` sees it."""

    seed: int
    client: int
    round: int
    mean_embedding: Callable[[], Floats]
    """Mean over its training graphs of what the model pools of each, float64 [h]: the trained model's,
    before any average, without dropout and with running statistics."""


class AlgorithmOptions(Options):
    """Options that a suite may set in the case's `algorithm` table.

    ``pf`` says whether the model's GraphNorm layers, FedCCH's personalised factor, stay with the client.
    """

    name: str
    pf: Literal["local", "shared"] = "local"

    added: ClassVar[frozenset[str]] = frozenset({"pf"})

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that the algorithm can use: a report on a client needs it trained alone."""
        return frozenset({"compiled", "grouped", "csr", "reference"})


class Algorithm:
    """Base of all algorithms.

    Subclasses name themselves (`name`), may bring their own `Options`, and
    override the hooks they need. Hooks are pure: what they return depends on
    their arguments and the options alone, so every rank gets the same answer.
    """

    name: ClassVar[str]
    Options: ClassVar[type[AlgorithmOptions]] = AlgorithmOptions
    communicates: ClassVar[bool] = True
    """False: after the common start no parameters travel and each client keeps what it trained."""
    penalises: ClassVar[bool] = False
    """True: `penalty` is called at each local step."""
    pools: ClassVar[bool] = False
    """True: one client holds what all clients of the partition hold."""
    central: ClassVar[bool] = False
    """True: `update` runs on rank 0 for every group, and may keep state there (`state`, `restore`)."""
    controls: ClassVar[bool] = False
    """True: clients and server have control variates, and `correction` and `renewed` are called."""
    reads_share: ClassVar[bool] = True
    """False: `shares` does not depend on the case's option `share`."""
    regroups: ClassVar[bool] = False
    """True: `group` forms the groups of every round anew. Their members come from different models, so
    the shared tensors themselves are averaged, not their updates."""
    wants_rows: ClassVar[bool] = False
    """True: `divide` needs the updates of a group that is due, which travel to rank 0 then and only then."""

    def __init__(self, options: AlgorithmOptions) -> None:
        self.options = options

    def begin(self, trained: int, num_clients: int) -> None:
        """Hear, before the first round, how many of the shared elements are parameters, and of the clients.

        Running statistics follow the trained parameters in every shared vector.
        """

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """Return the clients that train in this round, ascending: a sample without replacement."""
        count = max(1, round_half_up(fraction * num_clients))
        if count >= num_clients:
            return np.arange(num_clients, dtype=np.int64)
        stream = key(seed, Purpose.PARTICIPATION, round)
        return np.sort(permutation(stream, num_clients)[:count])

    def groups(self, num_clients: int) -> Ints:
        """Return the group of each client at the start, int64 [clients]; group models are averaged apart."""
        return np.zeros(num_clients, dtype=np.int64)

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client.

        Parameters
        ----------
        name : str
            Of a parameter or a running statistic, as its module has it; what is shared must not depend
            on the client's features and classes.
        share : str
            The case's option: "conv" (the convolutions, tensors named ``conv.*``, with their
            normalisation, ``norm.*``, and a structure channel, ``structure.*``) or "all".
        """
        if name.startswith("graph_norm."):
            return self.options.pf == "shared"
        return share == "all" or name.startswith(("conv.", "norm.", "structure."))

    def objection(self, model: ModelOptions) -> str:
        """Return why the algorithm cannot run with this model and what to do, or nothing."""
        return ""

    def penalty(self, parameters: Vector, reference: Vector, gradient: Vector) -> None:
        """Add the gradient of a penalty on the shared parameters to `gradient`, in place.

        Parameters
        ----------
        parameters, reference, gradient : float32 [shared]
            Current parameters, those received at the start of the round, and
            the gradient of the local loss.
        """

    def correction(self, own: Any, server: Any) -> Any:
        """Return what is added to the gradient of the shared parameters in every local step.

        Parameters
        ----------
        own, server : float32 [trained], torch
            Control variates of the client and of the server.
        """
        raise NotImplementedError

    def renewed(self, own: Any, server: Any, moved: Any, steps: int, lr: float) -> Any:
        """Return the client's next control variate after `steps` steps of length `lr` moved it by `moved`."""
        raise NotImplementedError

    def report_size(self, model: ModelOptions) -> int:
        """Return the bytes of `report`."""
        return 0

    def report(self, trained: Trained) -> Bytes:
        """Return what a client tells the server beside its numbers, uint8 [report_size]; on its rank.

        Only called where `report_size` is not 0.
        """
        return np.zeros(0, np.uint8)

    def weights(self, samples: Ints) -> Ints:
        """Return each client's weight in averages, int64 [clients], from its number of training graphs."""
        return samples

    def update(
        self, model: npt.NDArray[np.float32], mean: Floats, num_clients: int
    ) -> npt.NDArray[np.float32]:
        """Return a group's next model from its present one and the weighted mean of its deltas.

        Parameters
        ----------
        model : float32 [shared]
        mean : float64 [shared]
        num_clients : int
            Clients behind the mean.
        """
        return (model + mean).astype(np.float32)

    # What follows runs on rank 0.

    def group(self, seed: int, round: int, reports: Bytes) -> Ints:
        """Return the groups of this round's averages, int64 [clients], from 0; if `regroups`.

        Parameters
        ----------
        seed, round : int
        reports : uint8 [clients, report_size]
        """
        return np.zeros(len(reports), np.int64)

    def found(self) -> dict[str, npt.NDArray[Any]]:
        """Return what `group` found in this round, by the names of `fields`."""
        return {}

    # What follows is for algorithms whose groups split.

    def warm_up(self) -> None:
        """Do what the first use of a library costs, before rounds are timed."""

    def observe(self, reports: Mapping[str, Floats]) -> None:
        """Take note of a round's reports before it is averaged.

        Parameters
        ----------
        reports : mapping of str to float64 [clients]
            ``delta_norm`` and ``gradient_norm``; NaN for clients that sat out.
        """

    def suspects(self, round: int, group: Ints, reports: Mapping[str, Floats]) -> list[int]:
        """Return the groups whose mean update must be known to decide whether they split."""
        return []

    @property
    def criterion_is_weighted(self) -> bool:
        """Whether that mean is weighted by training graphs."""
        return False

    def is_due(self, mean_norm: float) -> bool:
        """Return whether a suspect whose mean update has this norm splits now."""
        return False

    def divide(self, members: Ints, rows: npt.NDArray[np.float32]) -> Division:
        """Return the parts of a group that is due.

        Parameters
        ----------
        members : int64 [k]
            Clients, ascending.
        rows : float32 [k, shared]
            Their updates if `wants_rows`, else [k, 0].
        """
        return Division((members,), np.zeros((len(members), len(members))))

    def after_splits(self) -> None:
        """Hear that at least one group was divided in this round."""

    def fields(self, num_clients: int) -> tuple[RecordField, ...]:
        """Return the fields of the record beside the common ones."""
        return ()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what rank 0 must know to go on after a checkpoint.

        Names, types and shapes of the arrays are the same after `begin` as after every round: a checkpoint
        with others is not used.
        """
        return {}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take back what `state` returned."""


def round_half_up(value: float) -> int:
    """Round to the nearest integer, halves up."""
    return int(np.floor(value + 0.5))
