"""The hooks of an algorithm's capabilities as the engine calls them; each class stands for one capability."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms import capabilities
from fedmpi.algorithms.base import Floats, Ints
from fedmpi.algorithms.capabilities import (
    RECEIVED_LOSS,
    Bytes,
    Division,
    Embeddings,
    Merging,
    Reports,
    RoundWeights,
    Trained,
    Vector,
)
from fedmpi.engine import hook_checks as checks
from fedmpi.engine.hook_calls import HookCalls
from fedmpi.models.generator import Generator
from fedmpi.models.options import ModelOptions
from fedmpi.store.schema import Field


class CapabilityHooks:
    """The hooks of one capability; see the class of its name in `fedmpi.algorithms.capabilities`."""

    def __init__(self, calls: HookCalls) -> None:
        self._calls = calls


class LocalPenalty(CapabilityHooks):
    """Checked hooks of the capability."""

    def penalty(self, parameters: Vector, reference: Vector, gradient: Vector) -> None:
        """Let the hook change the gradient of a local step."""
        _change_gradient(self._calls, "penalty", "reference", (parameters, reference, gradient))


class PersonalModel(CapabilityHooks):
    """Checked hooks of the capability."""

    def personal_penalty(self, parameters: Vector, received: Vector, gradient: Vector) -> None:
        """Let the hook change the gradient of the personal model's local step."""
        _change_gradient(self._calls, "personal_penalty", "received", (parameters, received, gradient))


class ControlVariates(CapabilityHooks):
    """Checked hooks of the capability."""

    def correction(self, own: Any, server: Any) -> Any:
        """Return the correction of a local step."""
        return self._calls.ask("correction", (own, server), checks.like, own)

    def renewed(self, own: Any, server: Any, moved: Any, steps: int, lr: float) -> Any:
        """See `capabilities.ControlVariates.renewed`."""
        return self._calls.ask("renewed", (own, server, moved, steps, lr), checks.like, own)


class ClientVector(CapabilityHooks):
    """Checked hooks of the capability."""

    def linear_term(self, own: Any) -> Any:
        """Return what a client's vector adds to the gradient of a local step."""
        return self._calls.ask("linear_term", (own,), checks.like, own)

    def next_vector(self, own: Any, moved: Any, steps: int, lr: float) -> Any:
        """See `capabilities.ClientVector.next_vector`."""
        return self._calls.ask("next_vector", (own, moved, steps, lr), checks.like, own)


class TrainingPhases(CapabilityHooks):
    """Checked hooks of the capability."""

    def phases(self, local_epochs: int) -> tuple[int, ...]:
        """Return the epochs of each phase."""
        return self._calls.ask_once("phases", (local_epochs,), checks.phases)

    def trains(self, name: str, phase: int) -> bool:
        """Return whether a phase trains a parameter."""
        return self._calls.ask_once("trains", (name, phase), checks.yes_or_no, key=(name, phase))


class MixedModel(CapabilityHooks):
    """Checked hooks of the capability."""

    def first_share(self) -> float:
        """Return the share of the second model at the start."""
        return self._calls.ask_once("first_share", (), checks.share)

    def next_share(self, share: float, slope: float, lr: float) -> float:
        """Return a client's share after the first step of a round."""
        return self._calls.ask("next_share", (share, slope, lr), checks.share)


class LocalMerging(CapabilityHooks):
    """Checked hooks of the capability."""

    def merges(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the merged parameters."""
        return self._calls.ask_once("merges", (names,), checks.some_of, names, key=names)

    def merging_weights(self, client: Merging) -> Any:
        """Return a client's weights."""
        return self._calls.ask("merging_weights", (client,), checks.like, client.weights)


class MaskedModel(CapabilityHooks):
    """Checked hooks of the capability."""

    def masks(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the masked parameters."""
        return self._calls.ask_once("masks", (names,), checks.some_of, names, key=names)

    def mask_penalty(self, mask: Any, gradient: Any) -> None:
        """Let the hook change the gradient of a client's mask."""
        before = getattr(mask, "_version", 0)
        self._calls.call("mask_penalty", mask, gradient)
        if getattr(mask, "_version", 0) != before:
            raise self._calls.failed("mask_penalty", "changed `mask`: only `gradient` may change")

    @property
    def least_mask(self) -> float:
        """Elements of a mask below it count as 0 after training."""
        return self._calls.ask("least_mask", (), checks.share)


class Mends(CapabilityHooks):
    """Checked hooks of the capability."""

    def generator(self) -> Generator:
        """Return the network that generates missing neighbours."""
        return self._calls.ask_once("generator", (), checks.generator)


class EmbeddingLoss(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def needs_received(self) -> bool:
        """Whether the received model's embeddings are wanted."""
        return bool(self._calls.call("needs_received"))

    @property
    def needs_previous(self) -> bool:
        """Whether those of the client's last model are wanted."""
        return bool(self._calls.call("needs_previous"))

    def embedding_loss(self, batch: Embeddings) -> Any:
        """Return a batch's term, or None."""
        return self._calls.ask("embedding_loss", (batch,), checks.scalar_like, batch.current)


class Prototypes(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def predicts(self) -> bool:
        """Whether prototypes decide on held-out graphs."""
        return self._calls.ask("predicts_by_prototypes", (), checks.yes_or_no)

    def global_prototypes(self, means: npt.NDArray[np.float32], counts: Ints) -> npt.NDArray[np.float32]:
        """Return the prototypes that clients get."""
        found = self._calls.call("global_prototypes", means, counts)
        return self._calls.checked("global_prototypes", checks.rows, found, means.shape[1:])


class RowAggregate(CapabilityHooks):
    """Checked hooks of the capability."""

    def aggregate(self, rows: npt.NDArray[np.float32], weights: Ints) -> Floats:
        """Return what takes the place of the mean."""
        mean = self._calls.call("aggregate", rows, weights)
        return self._calls.checked("aggregate", checks.mean, mean, rows.shape[1])


class Splits(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def wants_rows(self) -> bool:
        """Whether `split` gets updates."""
        return bool(self._calls.call("wants_rows"))

    def observe(self, reports: Reports) -> None:
        """Show the round's reports; what is recorded of them cannot be changed there."""
        self._calls.call("observe", _read_only(reports))

    def split_candidates(self, round: int, group: Ints, reports: Reports) -> list[int]:
        """Return the groups that may split."""
        candidates = self._calls.call("split_candidates", round, group.copy(), _read_only(reports))
        took_part = ~np.isnan(reports["delta_norm"])
        return self._calls.checked("split_candidates", checks.split_candidates, candidates, group, took_part)

    @property
    def criterion_is_weighted(self) -> bool:
        """Whether the mean that decides is weighted."""
        return self._calls.ask("criterion_is_weighted", (), checks.yes_or_no)

    def should_split(self, mean_norm: float) -> bool:
        """Return whether a candidate splits."""
        return self._calls.ask("should_split", (mean_norm,), checks.yes_or_no)

    def split(self, members: Ints, rows: npt.NDArray[np.float32]) -> Division:
        """Return the parts of a group."""
        return self._calls.ask("split", (members.copy(), rows), checks.division, members)

    def after_splits(self) -> None:
        """Report to the algorithm which groups were split."""
        self._calls.call("after_splits")


class Regroups(CapabilityHooks):
    """Checked hooks of the capability."""

    def report_size(self, model: ModelOptions) -> int:
        """Return the bytes of a client's report."""
        return self._calls.ask_once("report_size", (model,), checks.report_size)

    def report(self, trained: Trained, size: int) -> Bytes:
        """Return a client's report, uint8 [size]."""
        return self._calls.ask("report", (trained,), checks.report, size)

    def group(self, seed: int, round: int, reports: Bytes) -> Ints:
        """Return the groups of the round."""
        return self._calls.ask("group", (seed, round, reports), checks.groups, self._calls.num_clients)


class PersonalAggregates(CapabilityHooks):
    """Checked hooks of the capability."""

    def num_statistics(self, model: ModelOptions, classes: int) -> int:
        """Return the length of a client's statistics."""
        return self._calls.ask_once("num_statistics", (model, classes), checks.num_statistics, key=classes)

    def statistics(self, trained: Trained, size: int) -> npt.NDArray[np.float32]:
        """Return a client's statistics, float32 [size]."""
        return self._calls.ask("statistics", (trained,), checks.rows, (size,))

    def client_weights(self, statistics: npt.NDArray[np.float32], samples: Ints) -> Floats:
        """Return the weights of the participants' models in each other's means; the sum of each row is 1."""
        count = len(statistics)
        return self._calls.ask("client_weights", (statistics, samples), checks.client_weights, count)


class WeightsFromReports(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def received_loss(self) -> bool:
        """Whether reports hold the loss at the received model."""
        return isinstance(self._calls.algorithm, capabilities.WeightsFromLosses)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the clients' reports beside their numbers of samples."""
        usual = ("steps", "train_loss", "delta_norm", "gradient_norm")
        return (*usual, RECEIVED_LOSS) if self.received_loss else usual

    def round_weights(self, round: int, lr: float, reports: Reports) -> RoundWeights:
        """Return the weights of a group's participants as they enter the sum."""
        found, count = self._calls.call("round_weights", round, lr, reports), len(reports["samples"])
        return self._calls.checked("round_weights", checks.round_weights, found, count)


class Records(CapabilityHooks):
    """Checked hooks of the capability."""

    def fields(self) -> tuple[Field, ...]:
        """Return the algorithm's own fields."""
        return self._calls.ask_once("fields", (self._calls.num_clients,), checks.fields)

    def field_values(self) -> dict[str, npt.NDArray[Any]]:
        """Return the round's values."""
        found, count = self._calls.call("field_values"), self._calls.num_clients
        return self._calls.checked("field_values", checks.field_values, found, self.fields(), count)

    def check_fields(self, given: Collection[str]) -> None:
        """Refuse a round's row that lacks what the algorithm's record fields promise."""
        for field in self.fields():
            if field.name not in given:
                raise self._calls.failed("field_values", f'gave no "{field.name}", which fields() names')


class ServerState(CapabilityHooks):
    """Checked hooks of the capability."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the server's state."""
        return self._calls.checked("state", checks.state, self._calls.call("state"))

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the server's state from a checkpoint."""
        self._calls.call("restore", arrays)


def _change_gradient(calls: HookCalls, hook: str, fixed: str, vectors: tuple[Vector, Vector, Vector]) -> None:
    """Call a hook that changes the last vector; the second, what the client received, must stay as it is."""
    before = getattr(vectors[1], "_version", 0)
    calls.call(hook, *vectors)
    if getattr(vectors[1], "_version", 0) != before:
        raise calls.failed(hook, f"changed `{fixed}`: only `gradient` may change")


def _read_only(reports: Reports) -> dict[str, Floats]:
    """Return views that cannot be written to."""
    views = {name: values.view() for name, values in reports.items()}
    for view in views.values():
        view.flags.writeable = False
    return views
